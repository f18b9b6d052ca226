import type { EventError, EventType } from "../protocol/event.ts";
import type {
  RunCompleted,
  RunEventPage,
  RunPage,
  RunQuery,
  RunRecord,
  SignalBody,
} from "../protocol/run.ts";
import type { CallOptions, WorkOptions } from "./call-options.ts";
import { follow } from "./follow.ts";
import type { StreamItem } from "./read-stream.ts";
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
      createResultStream(followRun(transport, runId, { after, options }), (body) => body as RunCompleted),
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

/** The items of a run's stream, to its result. Where the stream has ended before it could bring that, the record does. */
export async function* followRun(
  transport: Transport,
  runId: string,
  { after, options }: { readonly after: number | undefined; readonly options: CallOptions },
): AsyncGenerator<StreamItem, void> {
  for await (const item of follow(transport, {
    method: "GET",
    path: ["runs", runId, "stream"],
    after,
    options,
  })) {
    yield item;
    if (item.kind !== "event") return;
  }
  const { signal } = options;
  const asked = signal === undefined ? {} : { signal };
  yield toOutcome(await transport.request({ method: "GET", path: ["runs", runId], options: asked }));
}

function toOutcome({ run_id, status, result, error }: RunRecord): StreamItem {
  if (status === "completed") return { kind: "result", body: { status, run_id, result } };
  const { type, message, cause }: EventError = error ?? {
    type: "aborted",
    message: "The run was cancelled.",
  };
  const meta = cause === undefined ? { run_id } : { run_id, cause };
  return { kind: "failure", body: { error: { type, message, details: "", meta } } };
}
