import { agentStream, type EventLog } from "../../engine/event-log-contract.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { Message } from "../../protocol/message.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import type { SessionStore } from "../../stores/contract.ts";

export interface LogPageQuery {
  /** Maximum of messages, at least 1. */
  readonly limit: number;
  /** Only messages before this position; default: the newest. */
  readonly before?: number | undefined;
}

/** A message from the log of its session. */
export interface LoggedMessage {
  /** The index of its entry in the log, from 1. */
  readonly position: number;
  readonly operation_id: string;
  readonly message: Message;
}

export interface LogPage {
  /** Oldest first. */
  readonly entries: readonly LoggedMessage[];
  /** Only on the newest page: the events after this index cover everything that the entries do not. */
  readonly event_index?: number;
  readonly next_before?: number;
}

interface LogSources {
  readonly store: SessionStore;
  readonly events: EventLog;
  /** Whether this process works on the session, or can start to at any moment. */
  readonly isAtWork: () => boolean;
}

/** Characters of JSON after which a page ends early: messages can contain images. */
const largestPage = 8 * 1024 * 1024;

/**
 * Returns a page of the messages of a session, oldest first; undefined for a session without messages. The newest page
 * leaves out the running operation: a reader gets it from its start through the events after `event_index`.
 */
export async function readLogPage(
  sources: LogSources,
  key: SessionKey,
  { limit, before }: LogPageQuery,
): Promise<LogPage | undefined> {
  const info = await sources.store.info(key);
  if (info === undefined) return undefined;
  if (before !== undefined) return await readBefore(sources.store, key, { limit, before });
  const live = await findLive(sources, key);
  // An operation emits its start before it writes: later events cover any log entry that the index does not.
  const last = (await sources.store.info(key))?.position ?? 0;
  const later = await operationsAfter(sources.events, key, live.index);
  const isLive = ({ operation_id, message }: LoggedMessage): boolean => {
    const since = later.get(operation_id);
    return since !== undefined && message.timestamp >= since;
  };
  const page = await readBefore(sources.store, key, { limit, before: last + 1, leaveOut: isLive });
  return { ...page, event_index: live.index };
}

interface LogSpan {
  readonly limit: number;
  readonly before: number;
  readonly leaveOut?: (logged: LoggedMessage) => boolean;
}

async function readBefore(
  store: SessionStore,
  key: SessionKey,
  { limit, before, leaveOut = () => false }: LogSpan,
): Promise<LogPage> {
  const entries: LoggedMessage[] = [];
  let remaining = largestPage;
  let end = before - 1;
  // The log has other entries between messages: widen the window until the page is full.
  for (let window = limit + 20; end > 0; window *= 4) {
    const start = Math.max(0, end - window);
    const read = (await store.read(key, start)).slice(0, end - start);
    for (let index = read.length - 1; index >= 0; index -= 1) {
      const entry = read[index];
      if (entry?.type !== "message") continue;
      const { message, operation_id } = entry;
      const logged = { position: start + index + 1, operation_id, message };
      if (leaveOut(logged)) continue;
      remaining -= JSON.stringify(message).length;
      const isFull = entries.length === limit || (remaining < 0 && entries.length > 0);
      if (isFull) return { entries: entries.reverse(), next_before: logged.position + 1 };
      entries.push(logged);
    }
    end = start;
  }
  return { entries: entries.reverse() };
}

/**
 * Returns the index after which events cover the running work. An operation without an end that no process works on was
 * killed: its log entries are complete.
 */
async function findLive(
  { events, isAtWork }: LogSources,
  key: SessionKey,
): Promise<{ readonly index: number }> {
  const stream = agentStream(key.agent, key.instance_id);
  for (;;) {
    const last = await events.last(stream);
    const open = await newestStart(events, key, last);
    if (open === undefined) return { index: last };
    if (isAtWork()) return { index: open.index - 1 };
    // The operation can end between the two reads.
    if ((await events.last(stream)) === last) return { index: last };
  }
}

/** The newest `operation_start` of a session, if the operation has not ended. */
async function newestStart(events: EventLog, key: SessionKey, last: number): Promise<KitEvent | undefined> {
  let to = last;
  for (let window = 1_000; to > 0; window *= 4) {
    const from = Math.max(0, to - window);
    let newest: KitEvent | undefined;
    for await (const event of operationEvents(events, key, { from, to })) newest = event;
    if (newest !== undefined) return newest.type === "operation_start" ? newest : undefined;
    to = from;
  }
  return undefined;
}

/** Returns the start, or resumption, of each operation of a session after an index. */
async function operationsAfter(
  events: EventLog,
  key: SessionKey,
  index: number,
): Promise<ReadonlyMap<string, string>> {
  const begun = new Map<string, string>();
  for await (const event of operationEvents(events, key, { from: index, to: Number.POSITIVE_INFINITY }))
    if (event.type === "operation_start" && !begun.has(event.operation_id))
      begun.set(event.operation_id, event.timestamp);
  return begun;
}

async function* operationEvents(
  events: EventLog,
  { agent, instance_id, session }: SessionKey,
  { from, to }: { readonly from: number; readonly to: number },
): AsyncGenerator<KitEvent> {
  const stream = agentStream(agent, instance_id);
  for (let after = from; ; ) {
    const page = await events.read(stream, { after, limit: 1_000, types: ["operation_start", "operation"] });
    for (const event of page) if (event.index <= to && event.session === session) yield event;
    const last = page.at(-1);
    if (last === undefined || page.length < 1_000 || last.index >= to) return;
    after = last.index;
  }
}
