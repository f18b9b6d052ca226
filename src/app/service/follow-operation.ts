import { KitError } from "../../base/kit-error.ts";
import type { Engine } from "../../engine/contract.ts";
import type { EventLog } from "../../engine/event-log-contract.ts";
import type { DispatchRecord } from "../../protocol/dispatch.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { toDelta } from "../../protocol/event-buffer.ts";
import { agentStream } from "../../protocol/session-name.ts";
import { eventsBetween, type Instance, pageSize } from "./events-between.ts";
import { dispatchOf, operationOf } from "./stored-input.ts";
import { readOperationEvents } from "./trace.ts";

type OperationTarget = Instance & { readonly operation_id: string };

interface FollowSources {
  readonly events: EventLog;
  readonly engine: Pick<Engine, "getDispatch" | "awaitDispatch">;
}

export interface FollowOptions {
  /** The index of the operation's first event; saves the search for it. */
  readonly first_index?: number | undefined;
  /** A position that the reader has reached: an event ends there, also if the log has joined the deltas around it. */
  readonly after?: number | undefined;
  readonly signal: AbortSignal;
}

/** Returns the dispatched input that an operation of this instance works on. */
export async function findDispatch(
  engine: Pick<Engine, "getDispatch">,
  { agent, instance_id, operation_id }: OperationTarget,
): Promise<DispatchRecord | undefined> {
  const id = dispatchOf(operation_id);
  if (operationOf(id) !== operation_id) return undefined;
  const dispatch = await engine.getDispatch(id);
  return dispatch?.agent === agent && dispatch.instance_id === instance_id ? dispatch : undefined;
}

/**
 * Returns the events of an operation and its tasks from the first one on, each new one as it is emitted, to the end of the
 * operation. One that is still queued is waited for; if its input is cancelled first, there are no events. Throws `not_found`.
 */
export async function followOperation(
  { events, engine }: FollowSources,
  target: OperationTarget,
  { first_index, after = 0, signal }: FollowOptions,
): Promise<AsyncGenerator<KitEvent>> {
  const { operation_id } = target;
  const stream = agentStream(target.agent, target.instance_id);
  // Read before the dispatch: without an attempt then, all events of the operation come later.
  const last = await events.last(stream);
  const dispatch = await findDispatch(engine, target);
  let begin = (first_index ?? 0) - 1;
  if (dispatch === undefined) {
    const { events: first } = await readOperationEvents({ events }, target, { first_index, limit: 1 });
    begin = (first[0]?.index ?? 1) - 1;
  } else if (first_index === undefined)
    begin =
      dispatch.attempts === 0
        ? last
        : await placeBefore({ events, engine }, stream, { ...target, ...dispatch });
  let position = begin;
  let hasBegun = false;
  const all = async function* (): AsyncGenerator<KitEvent> {
    yield* eventsBetween(events, stream, { from: begin, to: after });
    const known = await knownPart(events, stream, { from: position, after });
    if (known !== undefined) yield known;
    const unbegun = new AbortController();
    const end = (): void => (hasBegun ? undefined : unbegun.abort());
    if (dispatch !== undefined) engine.awaitDispatch(dispatch.dispatch_id, { signal }).then(end, end);
    position = Math.max(position, after);
    const either = AbortSignal.any([signal, unbegun.signal]);
    yield* events.subscribe(stream, { after: position, signal: either });
    // The input ended before this reader saw an event. An operation that has begun gets an end.
    if (!signal.aborted)
      yield* eventsBetween(events, stream, { from: position, to: Number.POSITIVE_INFINITY });
    if (hasBegun) yield* events.subscribe(stream, { after: position, signal });
  };
  return (async function* () {
    const family = new Set([operation_id]);
    for await (const event of all()) {
      position = event.index;
      const { parent_operation_id: parent } = event;
      if (parent !== undefined && family.has(parent)) family.add(event.operation_id);
      if (!family.has(event.operation_id)) continue;
      hasBegun = true;
      yield event;
      if (event.type === "operation" && event.operation_id === operation_id) return;
    }
    if (signal.aborted || (!hasBegun && (await hasEnded(engine, dispatch)))) return;
    throw new KitError({ code: "unavailable", message: "The events of the instance have ended." });
  })();
}

async function hasEnded(
  engine: Pick<Engine, "getDispatch">,
  dispatch: DispatchRecord | undefined,
): Promise<boolean> {
  const { status } = (dispatch && (await engine.getDispatch(dispatch.dispatch_id))) ?? {};
  return status !== undefined && status !== "queued" && status !== "running";
}

/** Clocks of machines differ by less. */
const skewMs = 60_000;

/** Returns an index before the first event of the operation of a dispatch. Reads the newest events first: most readers come at once. */
async function placeBefore(
  { events, engine }: FollowSources,
  stream: string,
  target: OperationTarget & Pick<DispatchRecord, "dispatch_id" | "accepted_at">,
): Promise<number> {
  const { operation_id, dispatch_id, accepted_at: since } = target;
  const last = await events.last(stream);
  let place = last;
  for (let to = last, window = pageSize; to > 0; window *= 2) {
    const from = Math.max(0, to - window);
    let isOlder = false;
    let hasBegun = false;
    for await (const event of eventsBetween(events, stream, { from, to, types: ["operation_start"] })) {
      isOlder ||= Date.parse(event.timestamp) < Date.parse(since) - skewMs;
      if (event.operation_id !== operation_id) continue;
      hasBegun = true;
      place = Math.min(place, event.index - 1);
    }
    // A second attempt has a start of its own, after that of the first.
    if (isOlder || (hasBegun && ((await engine.getDispatch(dispatch_id))?.attempts ?? 2) < 2)) break;
    to = from;
  }
  return place;
}

/** Returns the part up to `after` of a delta that the log has joined with later ones; `from` is the last index before it. */
async function knownPart(
  events: EventLog,
  stream: string,
  { from, after }: { readonly from: number; readonly after: number },
): Promise<KitEvent | undefined> {
  if (after <= from) return undefined;
  const [[whole], [rest]] = await Promise.all([
    events.read(stream, { after: from, limit: 1 }),
    events.read(stream, { after, limit: 1 }),
  ]);
  if (whole === undefined || rest === undefined || whole.index !== rest.index) return undefined;
  const [delta, later] = [toDelta(whole), toDelta(rest)];
  if (delta === undefined || later === undefined || later.text.length >= delta.text.length) return undefined;
  return { ...delta, index: after, text: delta.text.slice(0, delta.text.length - later.text.length) };
}
