import "../base/require-node.ts";

export type { TraceContext, TracePlace, Tracing, TurnContent } from "../protocol/tracing.ts";
export {
  createOpenTelemetryObserver,
  type OpenTelemetryObserver,
  replayEvents,
} from "./create-observer.ts";
export { observeService, type ServiceLoad } from "./service-metrics.ts";
export { activeTrace, createIdGenerator, type IdGenerator } from "./trace-ids.ts";
