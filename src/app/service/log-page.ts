import type { EventLog } from "../../engine/event-log-contract.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { Message } from "../../protocol/message.ts";
import { type OperationEnd, readOperationEnd } from "../../protocol/operation-end.ts";
import { createBranch } from "../../protocol/rewind.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import { agentStream } from "../../protocol/session-name.ts";
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

/** The end of an operation that failed or was aborted. */
export interface LoggedEnd extends OperationEnd {
  readonly position: number;
  readonly operation_id: string;
  readonly timestamp: string;
}

export interface LogPage {
  /** Oldest first. */
  readonly entries: readonly LoggedMessage[];
  /** The ends that the log has after the page's messages, and before those of the next newer page; oldest first. Absent for none. */
  readonly ends?: readonly LoggedEnd[];
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
  const isLive = (operation_id: string, timestamp: string): boolean => {
    const since = later.get(operation_id);
    return since !== undefined && timestamp >= since;
  };
  const page = await readBefore(sources.store, key, { limit, before: last + 1, leaveOut: isLive });
  return { ...page, event_index: live.index };
}

interface LogSpan {
  readonly limit: number;
  readonly before: number;
  readonly leaveOut?: (operationId: string, timestamp: string) => boolean;
}

async function readBefore(
  store: SessionStore,
  key: SessionKey,
  { limit, before, leaveOut = () => false }: LogSpan,
): Promise<LogPage> {
  const entries: LoggedMessage[] = [];
  const ends: LoggedEnd[] = [];
  const toPage = (): LogPage => ({
    entries: entries.reverse(),
    ...(ends.length === 0 ? {} : { ends: ends.reverse() }),
  });
  // An operation that went on after its end has none.
  const continued = new Set<string>();
  const isLeft = createBranch();
  let remaining = largestPage;
  let end = before - 1;
  // The log has other entries between messages: widen the window until the page is full.
  for (let window = limit + 20; end > 0; window *= 4) {
    const start = Math.max(0, end - window);
    const read = (await store.read(key, start)).slice(0, end - start);
    for (let index = read.length - 1; index >= 0; index -= 1) {
      const entry = read[index];
      const position = start + index + 1;
      if (isLeft(entry, position)) continue;
      const end = entry === undefined ? undefined : readOperationEnd(entry);
      if (end !== undefined && !continued.has(end.operation_id) && !leaveOut(end.operation_id, end.timestamp))
        ends.push({ position, ...end });
      if (entry?.operation_id !== undefined) continued.add(entry.operation_id);
      if (entry?.type !== "message") continue;
      const { message, operation_id } = entry;
      const logged = { position, operation_id, message };
      if (leaveOut(operation_id, message.timestamp)) continue;
      remaining -= JSON.stringify(message).length;
      const isFull = entries.length === limit || (remaining < 0 && entries.length > 0);
      if (isFull) return { ...toPage(), next_before: logged.position + 1 };
      entries.push(logged);
    }
    end = start;
  }
  return toPage();
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
    const open = await newestBoundary(events, key, { last });
    if (open?.type !== "operation_start") return { index: last };
    if (isAtWork()) return { index: open.index - 1 };
    // The operation can end between the two reads.
    if ((await events.last(stream)) === last) return { index: last };
  }
}

/** The newest start or end of an operation in a session; `operationId` selects one operation. */
export async function newestBoundary(
  events: EventLog,
  key: SessionKey,
  { last, operationId }: { readonly last: number; readonly operationId?: string },
): Promise<KitEvent | undefined> {
  let to = last;
  for (let window = 1_000; to > 0; window *= 4) {
    const from = Math.max(0, to - window);
    let newest: KitEvent | undefined;
    for await (const event of operationEvents(events, key, { from, to }))
      if (operationId === undefined || event.operation_id === operationId) newest = event;
    if (newest !== undefined) return newest;
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
