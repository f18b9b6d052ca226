import type { EventError, EventType } from "../protocol/event.ts";
import type {
  CancelledRuns,
  CancelRunsBody,
  RetriedRuns,
  RetryRunsBody,
  RunCompleted,
  RunEventPage,
  RunJournalPage,
  RunPage,
  RunQuery,
  RunRecord,
  SignalBody,
} from "../protocol/run.ts";
import type { CallOptions, WorkOptions } from "./call-options.ts";
import { follow } from "./follow.ts";
import type { CompletedRun } from "./project-types.ts";
import type { StreamItem } from "./read-stream.ts";
import { createResultStream, type ResultStream } from "./result-stream.ts";
import { route } from "./route-call.ts";
import type { Transport } from "./transport.ts";

/** A running run; its result is the return value of the workflow. */
export type RunStream<Result = unknown> = ResultStream<CompletedRun<Result>>;

export interface RunEventsInput {
  readonly after?: number | undefined;
  /** 1 to 1,000; default 100. */
  readonly limit?: number | undefined;
  readonly types?: readonly EventType[] | undefined;
}

export interface RunsClient {
  /** Returns the record of a run. Throws `run_not_found`. */
  get(runId: string, options?: CallOptions): Promise<RunRecord>;
  /** Lists runs, newest first. */
  list(query?: RunQuery, options?: CallOptions): Promise<RunPage>;
  /** Returns a page of a run's events, oldest first. */
  events(runId: string, input?: RunEventsInput, options?: CallOptions): Promise<RunEventPage>;
  /** Returns a page of a run's journal: its steps, sleeps and waits, with their results. */
  journal(
    runId: string,
    page?: { readonly after?: number | undefined; readonly limit?: number | undefined },
    options?: CallOptions,
  ): Promise<RunJournalPage>;
  /**
   * Yields a run's events after an index, then each new one, to its end. If the connection breaks, it reconnects after the
   * last event. Leaving the loop early does not affect the run.
   */
  stream(runId: string, input?: { readonly after?: number }, options?: CallOptions): RunStream;
  /**
   * Continues a failed run where it was: its finished steps are not repeated. Throws `conflict` for a run that has not failed.
   */
  retry(runId: string, options?: CallOptions): Promise<RunRecord>;
  /** Cancels a run. Returns false if it had already ended. */
  cancel(runId: string, options?: CallOptions): Promise<boolean>;
  /** Cancels the runs with these ids, or a page of the open ones that match; continue with `next_cursor`. */
  cancelAll(body: CancelRunsBody, options?: CallOptions): Promise<CancelledRuns>;
  /** Retries the failed runs with these ids, or a page of those that match; continue with `next_cursor`. */
  retryAll(body?: RetryRunsBody, options?: CallOptions): Promise<RetriedRuns>;
  /** Sends a run a value that it waits for, now or later. */
  signal(runId: string, signal: SignalBody, options?: WorkOptions): Promise<void>;
}

export function createRunsClient(transport: Transport): RunsClient {
  const { request } = transport;
  const params = (run_id: string): { readonly run_id: string } => ({ run_id });
  return {
    get: (runId, options) => request("GET /runs/{run_id}", { params: params(runId), options }),
    list: (query = {}, options) => request("GET /runs", { query, options }),
    events: (runId, query = {}, options) =>
      request("GET /runs/{run_id}/events", { params: params(runId), query, options }),
    journal: (runId, query = {}, options) =>
      request("GET /runs/{run_id}/journal", { params: params(runId), query, options }),
    stream: (runId, { after } = {}, options = {}) =>
      createResultStream(followRun(transport, runId, { after, options }), (body) => body as RunCompleted),
    retry: (runId, options) =>
      request("POST /runs/{run_id}/retry", { params: params(runId), body: {}, options }),
    async cancel(runId, options) {
      const call = { params: params(runId), body: {}, options, repeatable: true } as const;
      return (await request("POST /runs/{run_id}/cancel", call)).cancelled;
    },
    cancelAll: (body, options) => request("POST /runs/cancel", { body, options, repeatable: true }),
    retryAll: (body = {}, options) => request("POST /runs/retry", { body, options }),
    async signal(runId, body, options) {
      await request("POST /runs/{run_id}/signal", { params: params(runId), body, options });
    },
  };
}

/** Yields the items of a run's stream, to its result. If the stream ends before, the result comes from the run's record. */
export async function* followRun(
  transport: Transport,
  run_id: string,
  { after, options }: { readonly after: number | undefined; readonly options: CallOptions },
): AsyncGenerator<StreamItem, void> {
  const params = { run_id };
  const call = route("GET /runs/{run_id}/stream", { params, options });
  for await (const item of follow(transport, { ...call, after })) {
    yield item;
    if (item.kind !== "event") return;
  }
  const { signal } = options;
  yield toOutcome(await transport.request("GET /runs/{run_id}", { params, options: { signal } }));
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
