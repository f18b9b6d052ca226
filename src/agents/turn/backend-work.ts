import type { AgentBackend } from "../../backends/contract.ts";
import type { Sandbox } from "../../sandboxes/contract.ts";
import type { JsonSchema } from "../define/tool.ts";
import type { PastOperation } from "../log/past-operation.ts";
import type { NativeOutput } from "../output/native-output.ts";

/** What decides the turns of an operation, and what it needs beside them. */
export interface BackendWork {
  readonly backend: AgentBackend;
  /** What the log has of the operation, where it is gone on with. */
  readonly past: PastOperation | undefined;
  readonly projectRoot: string | undefined;
  readonly sandbox: () => Promise<Sandbox>;
  /** Has the provider itself make JSON of a schema; undefined where it does not. */
  readonly nativeOutput: (schema: JsonSchema, offersTools: boolean) => NativeOutput | undefined;
  /** Runs that came to their end, in this process or before. */
  runs: number;
  /** The operation, as far as one of the backend's agents may have taken over a part of it. */
  readonly whole: { part: OperationPart | undefined };
}

/** The part of an operation that one of the backend's agents has taken over, and goes on with now. */
export interface OperationPart {
  /** On the events of the part. */
  readonly task_id: string;
  /** The turn that handed it over: its own events belong to the part before. */
  readonly turnId: string;
  readonly before: string | undefined;
  readonly startedAt: number;
}

/** The task that an event of an operation belongs to; undefined for the operation itself. */
export function taskOfPart(part: OperationPart | undefined, turnId: string | undefined): string | undefined {
  return part === undefined || part.turnId !== turnId ? part?.task_id : part.before;
}
