import { KitError } from "../../base/kit-error.ts";
import type { EventBody } from "../../protocol/event.ts";
import type { ReceiptItem } from "../../protocol/receipt.ts";
import type { Sandbox } from "../../sandboxes/contract.ts";
import type { AgentPolicy } from "../define/agent-profile.ts";
import type { ToolContext } from "../define/tool.ts";
import { isGrantedPath, isSecretFile } from "../policy/protected-paths.ts";
import type { SourceGuard, Writer } from "../project-context.ts";

/** What the built-in tools of one operation work with. */
export interface ToolEnvironment {
  readonly sandbox: () => Promise<Sandbox>;
  readonly policy: AgentPolicy;
  /** The folder of the agent's project on this machine. */
  readonly projectRoot?: string | undefined;
  /** Keeps what models write apart from what the process runs. */
  readonly sources?: SourceGuard | undefined;
  /** To whom what a tool writes is put down. */
  readonly writer: (tool: string) => Writer;
  /** Whether a person can be asked about what is protected. */
  readonly asks: boolean;
  /** For the command of a call: secrets granted to this operation, and the call's place in its trace where that is asked for. */
  readonly envOf: (call: Pick<ToolContext, "turn_id" | "tool_call_id">) => Readonly<Record<string, string>>;
  readonly emit: (body: EventBody) => void;
  /** What a workspace path is of the rules of the project, to one who reads its text. */
  readonly sourceAt?: ((path: string, text: string) => Promise<readonly ReceiptItem[]>) | undefined;
}

/** A JSON Schema object whose properties are all texts, but for those given otherwise. */
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

/** Whether a path is a file of secrets that this agent is not granted, whatever a link calls it. */
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

export function secretRefusal(path: string, { asks }: Pick<ToolEnvironment, "asks">): KitError {
  const otherwise = asks ? "" : "; with `approvals`, a person is asked";
  return new KitError({
    code: "forbidden",
    message: `${path} holds secrets, and is not for models to read. Grant it in allowProtectedPaths${otherwise}. What is set, .env.example may say.`,
  });
}
