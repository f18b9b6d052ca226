import { createEventHub, type EventHub, type EventObservers } from "../../agents/events.ts";
import { harnessOf } from "../../agents/harness.ts";
import { loadPastOperation, type PastOperation } from "../../agents/log/past-operation.ts";
import { stateOf } from "../../agents/log/session-state.ts";
import { unsavedOf } from "../../agents/log/unsaved-work.ts";
import { isoTime, systemClock } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import type { AdmitRequest, InputEnd } from "../../engine/contract.ts";
import type { EventLog } from "../../engine/event-log-contract.ts";
import { type OperationEnd, operationEndNote } from "../../protocol/operation-end.ts";
import type { SessionEntry, SessionKey } from "../../protocol/session-entry.ts";
import { agentStream } from "../../protocol/session-name.ts";
import type { SessionStore } from "../../stores/contract.ts";
import type { Instances } from "../runtime/instances.ts";
import { newestBoundary } from "./log-page.ts";
import type { EventRecorder } from "./prompts.ts";
import { operationOf } from "./stored-input.ts";

export interface InputEndParts {
  readonly store: SessionStore;
  /** The log of this node. */
  readonly events: EventLog;
  readonly instances: Pick<Instances, "withLive">;
  readonly observers: EventObservers;
  /** Stores an event of an instance that is not in memory, and passes it to the listeners. */
  readonly record: EventRecorder;
}

/** Conflicts with other writers before the end stays out of the session's log. */
const maxConflicts = 20;

/**
 * Ends the operation of an input without the code of its agent: writes the note with its end and emits its last events. Does
 * nothing if the operation has ended, so that each can be there once however often this is called. The caller holds the
 * session's place in line.
 */
export async function endOperation(
  { store, events, instances, observers, record }: InputEndParts,
  input: InputEnd,
  { agent, instance_id, session }: AdmitRequest,
): Promise<void> {
  const key = { agent, instance_id, session };
  const stream = agentStream(agent, instance_id);
  const operationId = operationOf(input.id);
  const newest = await newestBoundary(events, key, { last: await events.last(stream), operationId });
  if (newest?.type !== "operation") {
    const duration_ms = newest === undefined ? 0 : Math.max(0, Date.now() - Date.parse(newest.timestamp));
    const end = toEnd(input, duration_ms);
    let past: PastOperation | undefined;
    await instances.withLive(key, async (live) => {
      const note = noteEnd(live === undefined ? store : harnessOf(live).store, { key, operationId, end });
      past = await note.catch((error: unknown) => {
        if (error instanceof KitError && error.code === "lease_lost") throw error;
        // The store is unavailable, as at the end of an attempt: the event has the end, and the input must not wait for it.
        return undefined;
      });
    });
    // An attempt that failed before its operation began has left nothing to end.
    if (newest === undefined && past === undefined) return;
    const operation_kind = newest?.type === "operation_start" ? newest.operation_kind : "prompt";
    const publish = (hub: EventHub): void => {
      const scope = { ...key, operation_id: operationId };
      const { error } = end;
      hub.publish(
        error === undefined ? { type: "aborted" } : { type: "error", error, will_retry: false },
        scope,
      );
      hub.publish(
        {
          type: "operation",
          operation_kind,
          duration_ms,
          is_error: true,
          ...(end.status === "aborted" ? ({ is_aborted: true } as const) : undefined),
          ...(past === undefined || past.usage.total_tokens === 0 ? undefined : { usage: past.usage }),
        },
        scope,
      );
      hub.publish({ type: "idle" }, scope);
    };
    await instances.withLive(key, async (live) => {
      // The indexes of a live agent's events come from its hub.
      if (live !== undefined) return publish(harnessOf(live).events);
      const hub = createEventHub({ clock: systemClock, observers, last: await events.last(stream) });
      hub.subscribe(record(stream));
      publish(hub);
    });
  }
  // Once the input has ended, no process ends its operation again.
  await events.flush();
}

function toEnd({ id, status, error, attempts }: InputEnd, duration_ms: number): OperationEnd {
  return {
    status: status === "failed" ? "failed" : "aborted",
    ...(error === undefined ? {} : { error }),
    ...(attempts > 1 ? { attempts } : {}),
    duration_ms,
    dispatch_id: id,
  };
}

/** Writes the note, unless it is the operation's newest entry. Returns the operation; undefined if the log has none. */
async function noteEnd(
  store: SessionStore,
  { key, operationId, end }: { key: SessionKey; operationId: string; end: OperationEnd },
): Promise<PastOperation | undefined> {
  await unsavedOf(store, systemClock).write(key);
  for (let conflicts = 0; ; conflicts += 1) {
    const entries = await store.read(key);
    const newest = entries.findLast(({ operation_id }) => operation_id === operationId);
    if (newest === undefined) return undefined;
    try {
      if (newest.type !== "note" || newest.name !== operationEndNote)
        await store.append({ key, expected: entries.length, entries: [toNote(operationId, end)] });
      return await loadPastOperation(store, stateOf(key, entries), { id: operationId, isFresh: false });
    } catch (error) {
      if (!(error instanceof KitError) || error.code !== "conflict" || conflicts >= maxConflicts) throw error;
    }
  }
}

function toNote(operation_id: string, value: OperationEnd): SessionEntry {
  const timestamp = isoTime(systemClock.now());
  return { version: 1, type: "note", name: operationEndNote, value, timestamp, operation_id };
}
