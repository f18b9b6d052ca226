import { linkSignals } from "../../base/abort.ts";
import { systemClock } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import type { Engine } from "../../engine/contract.ts";
import type { EventError, KitEvent } from "../../protocol/event.ts";
import type { RunCompleted, RunRecord } from "../../protocol/run.ts";
import { runStream } from "../../protocol/session-name.ts";
import type { ConnectionSlot } from "../access/connection-slots.ts";
import type { WorkContext } from "../service-context.ts";
import { encodeEvent, encodeOutcome, encodePosition } from "./event-streams.ts";

export interface RunStreamOptions {
  readonly slot: ConnectionSlot;
  readonly after?: number | undefined;
  /** Throws if the sender is no longer permitted to read the run. Absent for the sender that has just started the run. */
  readonly permit?: (() => Promise<void>) | undefined;
}

/** Answers with the events of a run after an index, and with its result or error as the last event. */
export function streamRun(
  { service, streams, masked, toEnvelope }: WorkContext,
  runId: string,
  { slot, permit, ...options }: RunStreamOptions,
): Response {
  const controller = new AbortController();
  const { signal } = controller;
  const source = async function* (): AsyncGenerator<string> {
    for await (const event of followRun(service.engine, runId, { ...options, signal })) {
      await permit?.();
      yield encodeEvent(event);
    }
    const record = await service.engine.awaitRun(runId, { signal });
    await permit?.();
    const last = await service.engine.events.last(runStream(runId));
    // A browser reconnects in any case. The position shows whether it has missed events.
    yield outcomeOf(runId, record) + encodePosition(Math.max(last, options.after ?? 0));
  };
  const outcomeOf = (id: string, record: RunRecord | undefined): string => {
    try {
      return encodeOutcome("result", masked(toCompleted(id, record)));
    } catch (error) {
      return encodeOutcome("error", toEnvelope(error));
    }
  };
  return streams.open(source(), {
    slot,
    resumable: true,
    onEnd: () => controller.abort(),
    toLastChunk: (error) => encodeOutcome("error", toEnvelope(error)),
  });
}

/** Whether a run has ended and has no events after an index. */
export async function isOver(
  engine: Pick<Engine, "events">,
  run: RunRecord,
  after: number,
): Promise<boolean> {
  return hasEnded(run) && after >= (await engine.events.last(runStream(run.run_id)));
}

const pageSize = 500;
/** How long the last events of an ended run may take from their writer to a reader. */
const lastEventsMs = 5_000;

/** Yields the events of a run after an index, to its end. Those of an ended run are read from the log. */
export async function* followRun(
  { events, getRun, awaitRun }: Pick<Engine, "events" | "getRun" | "awaitRun">,
  runId: string,
  { after = 0, signal }: { readonly after?: number | undefined; readonly signal: AbortSignal },
): AsyncGenerator<KitEvent> {
  const stream = runStream(runId);
  let position = after;
  const record = await getRun(runId);
  if (record !== undefined && !hasEnded(record)) {
    // The row of a run tells its end for certain. The mark in the stream is lost if the writer dies just then.
    const isLate = new AbortController();
    const reading = new AbortController();
    awaitRun(runId, { signal: reading.signal })
      .then(() => systemClock.sleep(lastEventsMs, reading.signal))
      .then(() => isLate.abort())
      .catch(() => undefined);
    const either = linkSignals([signal, isLate.signal]);
    try {
      for await (const event of events.subscribe(stream, { after, signal: either.signal })) {
        position = event.index;
        yield event;
      }
    } finally {
      reading.abort();
      either.unlink();
    }
    if (!isLate.signal.aborted) return;
  }
  for (;;) {
    const page = await events.read(stream, { after: position, limit: pageSize });
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < pageSize) return;
    position = last.index;
  }
}

function hasEnded({ status }: RunRecord): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/** Returns the result of an ended run. Throws the error of a failed run; its `meta.run_id` names the run. */
export function toCompleted(runId: string, record: RunRecord | undefined): RunCompleted {
  const meta = { run_id: runId };
  if (record === undefined)
    throw new KitError({ code: "run_not_found", message: "There is no such run.", meta });
  if (record.status === "completed") return { status: "completed", run_id: runId, result: record.result };
  if (record.status === "cancelled") {
    throw new KitError({ code: "aborted", message: "The run was cancelled.", meta });
  }
  const failure: EventError = record.error ?? { type: "internal_error", message: "The workflow failed." };
  const { type, message, cause } = failure;
  // The caller of a workflow gets the cause of the failure: it can read it in the run's events, too.
  throw new KitError({ code: type, message, meta: cause === undefined ? meta : { ...meta, cause } });
}
