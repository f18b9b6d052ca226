import type { EventBody } from "../../protocol/event.ts";
import type { ReceiptItem } from "../../protocol/receipt.ts";
import type { Sandbox } from "../../sandboxes/contract.ts";
import type { AgentPolicy } from "../agent-profile.ts";
import type { SourceGuard, Writer } from "../source-guard.ts";
import type { ToolContext } from "../tool.ts";

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
