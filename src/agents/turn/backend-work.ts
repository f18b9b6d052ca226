import type { AgentBackend } from "../../backends/contract.ts";
import type { Sandbox } from "../../sandboxes/contract.ts";
import type { JsonSchema } from "../define/tool.ts";
import type { PastOperation } from "../log/resume.ts";
import type { NativeOutput } from "../output/typed-output.ts";

/** The backend of an operation and its context. */
export interface BackendWork {
  /** Undefined for kit's own loop. */
  readonly backend: AgentBackend | undefined;
  /** The logged work of a resumed operation. */
  readonly past: PastOperation | undefined;
  readonly projectRoot: string | undefined;
  readonly sandbox: () => Promise<Sandbox>;
  /** The options that make the provider enforce a schema; undefined if it cannot. */
  readonly nativeOutput: (schema: JsonSchema, offersTools: boolean) => NativeOutput | undefined;
  /** Ended runs, of this process and earlier ones. */
  runs: number;
  /** The operation; `part` is set while an agent of the backend has taken over. */
  readonly whole: { part: OperationPart | undefined };
}

/** The part of an operation that an agent of the backend has taken over. */
export interface OperationPart {
  /** The task id on the events of the part. */
  readonly task_id: string;
  /** The turn that handed over; its own events belong to the previous part. */
  readonly turnId: string;
  readonly before: string | undefined;
  readonly startedAt: number;
}

/** The task that an event of an operation belongs to; undefined for the operation itself. */
export function taskOfPart(part: OperationPart | undefined, turnId: string | undefined): string | undefined {
  return part === undefined || part.turnId !== turnId ? part?.task_id : part.before;
}

/** The id of a task, derived from its key: the same key always gives the same id. */
export async function taskIdOf(key: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key));
  let text = "";
  for (const byte of new Uint8Array(digest, 0, 13)) text += byte.toString(16).padStart(2, "0");
  return `task_${text}`;
}
