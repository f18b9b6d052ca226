import type { Service } from "../app/service/service.ts";
import type { ErrorEnvelope } from "../protocol/errors.ts";
import type { Authorization } from "./access/authorize.ts";
import type { ServerLimits } from "./limits.ts";
import type { Reach } from "./routes/instance.ts";
import type { EventStreams } from "./streams/event-streams.ts";

/** The parts that the routes of runs and dispatches share: they need the engine alone. */
export interface WorkContext {
  readonly service: Pick<Service, "engine">;
  readonly authorization: Authorization;
  readonly streams: EventStreams;
  readonly limits: ServerLimits;
  /** Takes the application's keys out of a value that is sent. */
  readonly masked: <Value>(value: Value) => Value;
  /** The body of an error reply; reports what is an error of ours. */
  readonly toEnvelope: (error: unknown) => ErrorEnvelope;
}

/** The parts that the routes of agents and workflows share. */
export interface ServiceContext extends WorkContext {
  readonly service: Service;
  readonly reach: Reach;
}
