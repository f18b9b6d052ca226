import type { UIMessage } from "ai";

export type Part = UIMessage["parts"][number];

/** A call of a tool, of the project, of an MCP server or of the page. */
export interface Call {
  readonly id: string;
  readonly tool: string;
  readonly state: string;
  readonly input: unknown;
  readonly output?: unknown;
  readonly errorText?: string | undefined;
  readonly approval?: { readonly id: string; readonly approved?: boolean | undefined } | undefined;
}

/** Returns the call of a part; undefined for text and everything else. */
export function toCall(part: Part): Call | undefined {
  if (!("toolCallId" in part)) return undefined;
  const { toolCallId: id, state, input, output, errorText, approval } = part;
  const tool = part.type === "dynamic-tool" ? part.toolName : part.type.slice("tool-".length);
  return { id, tool, state, input, output, errorText, approval };
}

/** Whether a call of the part waits for a person's decision. */
export function isWaiting(part: Part): boolean {
  return toCall(part)?.state === "approval-requested";
}
