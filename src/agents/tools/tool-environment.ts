import { KitError } from "../../base/kit-error.ts";
import type { EventBody } from "../../protocol/event.ts";
import type { ReceiptItem } from "../../protocol/receipt.ts";
import type { Sandbox } from "../../sandboxes/contract.ts";
import type { AgentPolicy, AgentProfile } from "../define/agent-profile.ts";
import type { ToolContext } from "../define/tool.ts";
import { isGrantedPath, isSecretFile } from "../policy/protected-paths.ts";
import type { SourceGuard, Writer } from "../project-context.ts";

/** The environment of one session's built-in tools. */
export interface ToolEnvironment {
  readonly sandbox: () => Promise<Sandbox>;
  readonly policy: AgentPolicy & Pick<AgentProfile, "builtInTools">;
  /** The folder of the agent's project on this machine. */
  readonly projectRoot?: string | undefined;
  /** Keeps files that models write apart from files that the process loads. */
  readonly sources?: SourceGuard | undefined;
  /** The author of a tool's changes. */
  readonly writer: (tool: string) => Writer;
  /** Whether a person can approve access to protected files. */
  readonly canAskPerson: boolean;
  /** Variables for the command of a call: granted secrets, and the trace context if commands get it. */
  readonly envOf: (call: Pick<ToolContext, "turnId" | "toolCallId">) => Readonly<Record<string, string>>;
  readonly emit: (body: EventBody) => void;
  /** The receipt items for reading a workspace path. */
  readonly sourceAt?: ((path: string, text: string) => Promise<readonly ReceiptItem[]>) | undefined;
}

/** The JSON Schema of an object without additional properties. */
export function objectSchema(
  properties: Readonly<Record<string, Readonly<Record<string, unknown>>>>,
  required: readonly string[],
): Readonly<Record<string, unknown>> {
  return { type: "object", properties, required, additionalProperties: false };
}

export const pathProperty = {
  type: "string",
  minLength: 1,
  description: "Path in the workspace, such as src/app.ts.",
} as const;

/** Whether a path is a file of secrets without a grant for this agent, also through a link. */
export async function isSecret(
  path: string,
  { sandbox, policy }: Pick<ToolEnvironment, "sandbox" | "policy">,
): Promise<boolean> {
  const files = await sandbox();
  const granted = policy.allowProtectedPaths ?? [];
  const isOne = (name: string): boolean => isSecretFile(name) && !isGrantedPath(name, granted);
  if (isOne(`${files.cwd}/${path}`)) return true;
  const target = await files.resolve(path).catch(() => "");
  return isOne(target);
}

export function secretRefusal(
  path: string,
  { canAskPerson }: Pick<ToolEnvironment, "canAskPerson">,
): KitError {
  const otherwise = canAskPerson ? "" : "; with `approvals`, a person is asked";
  return new KitError({
    code: "forbidden",
    message: `${path} holds secrets, and is not for models to read. Grant it in allowProtectedPaths${otherwise}. For the names of variables, read .env.example.`,
  });
}
