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

/** A question of a tool that runs, as the part `data-question` has it. */
export interface Question {
  /** The id under which it is answered. */
  readonly id: string;
  readonly message: string;
  /** The JSON Schema of the answer. */
  readonly schema: {
    readonly properties?: Readonly<Record<string, Field>>;
    readonly required?: readonly string[];
  };
  readonly state: "waiting" | "answered" | "declined";
}

export interface Field {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly description?: string;
}

/** Returns the question of a part; undefined for everything else. */
export function toQuestion(part: Part): Question | undefined {
  return part.type === "data-question" ? { ...(part.data as Question), id: part.id ?? "" } : undefined;
}

/** Whether the part waits for a person's decision or answer. */
export function isWaiting(part: Part): boolean {
  return toCall(part)?.state === "approval-requested" || toQuestion(part)?.state === "waiting";
}
