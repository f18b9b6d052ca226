import type { TraceContext } from "../../protocol/trace-context.ts";
import type { TracePlace, TurnContent } from "../../protocol/tracing.ts";
import type { SecretMask } from "../secrets.ts";

/** A turn of an operation, or a call of one. */
export type TurnPlace = Pick<TracePlace, "turn_id" | "tool_call_id">;

/** The spans of one operation, as those who ask others for something hand them on. */
export interface OperationTracing {
  /** The headers for what is asked of others; undefined where nothing is traced. */
  headers(place: TurnPlace): TraceContext | undefined;
  /** Runs work as part of a call: what it asks of kit, and of instrumented clients, is below its span. */
  within<Value>(place: TurnPlace, work: () => Value): Value;
  /** Tells what a turn asks its model, where somebody wants to know. */
  tell(place: TurnPlace, content: () => TurnContent, mask: SecretMask | undefined): void;
}
