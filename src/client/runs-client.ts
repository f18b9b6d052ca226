import type { EventType } from "../protocol/event.ts";
import type {
  RunCompleted,
  RunEventPage,
  RunPage,
  RunQuery,
  SignalBody,
} from "../protocol/http/run-schemas.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { CallOptions, WorkOptions } from "./call-options.ts";
import { follow } from "./follow.ts";
import { createResultStream, type ResultStream } from "./result-stream.ts";
import type { Transport } from "./transport.ts";

/** A run under way; its result is what the workflow returned. */
export type RunStream = ResultStream<RunCompleted>;

export interface RunEventsInput {
  readonly after?: number;
  /** 1 to 1,000; default 100. */
  readonly limit?: number;
  readonly types?: readonly EventType[];
}

export interface RunsClient {
  /** Throws `run_not_found`. */
  get(runId: string, options?: CallOptions): Promise<RunRecord>;
  /** Newest first. */
  list(query?: RunQuery, options?: CallOptions): Promise<RunPage>;
  /** A page of a run's events, oldest first. */
  events(runId: string, input?: RunEventsInput, options?: CallOptions): Promise<RunEventPage>;
  /**
   * A run's events after an index, then each new one, to its end. Connects again after the last event
   * when the connection breaks; leaving it early does nothing to the run.
   */
  stream(runId: string, input?: { readonly after?: number }, options?: CallOptions): RunStream;
  /** False when it had ended. */
  cancel(runId: string, options?: CallOptions): Promise<boolean>;
  /** Hands a run the value that it waits for, or will. */
  signal(runId: string, signal: SignalBody, options?: WorkOptions): Promise<void>;
}

export function createRunsClient(transport: Transport): RunsClient {
  const { request } = transport;
  return {
    get: (runId, options = {}) => request({ method: "GET", path: ["runs", runId], options }),
    list: (query = {}, options = {}) => request({ method: "GET", path: ["runs"], query, options }),
    events: (runId, query = {}, options = {}) =>
      request({ method: "GET", path: ["runs", runId, "events"], query, options }),
    stream: (runId, { after } = {}, options = {}) =>
      createResultStream(
        follow(transport, { method: "GET", path: ["runs", runId, "stream"], after, options }),
        (body) => body as RunCompleted,
      ),
    async cancel(runId, options = {}) {
      const path = ["runs", runId, "cancel"];
      const call = { method: "POST", path, body: {}, options, repeatable: true } as const;
      return (await request<{ cancelled: boolean }>(call)).cancelled;
    },
    async signal(runId, body, options = {}) {
      await request({ method: "POST", path: ["runs", runId, "signal"], body, options });
    },
  };
}
