import { isoTime } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import type { ToolCallPart, ToolMessage, ToolResultPart, UserMessage } from "../../protocol/message.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import { isStoreUnavailable } from "../../protocol/store-fault.ts";
import type { MaybePromise, SessionStore } from "../../stores/contract.ts";
import { applyEntries, applyNew, commit, reloadState, type SessionState } from "./session-state.ts";

/** Conflicts with other writers before an append gives up. */
const maxReloads = 20;

export interface LogEnd {
  readonly store: SessionStore;
  readonly state: SessionState;
  /** The operation that appends. */
  readonly id: string;
  readonly now: () => number;
  /** Throws if the operation has lost the right to write. */
  readonly checkOwner: () => void;
  /** Keeps entries in memory that an unavailable store could not append at a position: see `Operation.appendOrKeep`. */
  readonly keepUnsaved: (entries: readonly SessionEntry[], position: number) => void;
  /** Whether the store appends asynchronously: only then does batching appends help. */
  waits: boolean;
  /** Entries that the state has and the log does not have yet. */
  ahead: Ahead | undefined;
}

interface Ahead {
  /** Length of the log before these entries. */
  readonly from: number;
  readonly entries: readonly SessionEntry[];
  /** Undefined until the write has started. */
  written: Promise<void> | undefined;
}

/**
 * Appends at the current end of the log; entries of another process are read first. For entries that do not depend
 * on the history, such as a user's message. `input` is the id of an input that the log accepts once.
 *
 * Calls that a killed process left without a result get one first. Throws `conflict` if another process
 * works on this operation.
 */
export function appendLatest(
  entries: readonly SessionEntry[],
  log: LogEnd,
  input?: string,
): MaybePromise<void> {
  if (log.ahead !== undefined) return flushAhead(log).then(() => appendLatest(entries, log, input));
  log.checkOwner();
  const write = (): MaybePromise<void> => {
    const closing = closingEntry(log.state, log);
    const all = closing === undefined ? entries : [closing, ...entries];
    return all.length > 0 ? commit(log, all, input) : undefined;
  };
  return orAfterOthers(log, write, { again: write, creates: true });
}

/**
 * Appends entries that follow from the history that the operation knows: an answer of the model, results of its
 * calls. If another process has continued the session, the entries follow at the end with a note of what they
 * answer. Throws `conflict` if that process works on this operation, or the session was deleted.
 */
export function appendWork(entries: readonly SessionEntry[], log: LogEnd): MaybePromise<void> {
  const { ahead } = log;
  if (ahead !== undefined) {
    // An answer that is already there joins the pending append: both are written or none.
    if (ahead.written === undefined && entries[0]?.type === "message") return writeAhead(log, ahead, entries);
    return flushAhead(log).then(() => appendWork(entries, log));
  }
  return appendBehind(entries, log, []);
}

/** Appends behind the entries that other writers have added since the operation's last one. */
function appendBehind(
  entries: readonly SessionEntry[],
  log: LogEnd,
  others: readonly SessionEntry[],
): MaybePromise<void> {
  const again = (more: readonly SessionEntry[]): MaybePromise<void> => {
    const rebased = afterOthers(entries, [...others, ...more], log);
    return rebased.length > 0 ? commit(log, rebased) : undefined;
  };
  log.checkOwner();
  const first = (): MaybePromise<void> => (others.length === 0 ? commit(log, entries) : again([]));
  return orAfterOthers(log, first, { again, creates: false });
}

/**
 * Like `appendWork`, for a caller that calls the model without waiting for the store: the state has the entries at once;
 * the log gets them in the next turn of the event loop, or together with an earlier answer. The next append or
 * `flushAhead`, one of which must follow, throws what failed.
 */
export function appendAhead(entries: readonly SessionEntry[], log: LogEnd): MaybePromise<void> {
  if (!log.waits || log.ahead !== undefined) return appendOrKeep(entries, log, (all) => appendWork(all, log));
  const ahead: Ahead = { from: log.state.position, entries, written: undefined };
  log.ahead = ahead;
  applyEntries(log.state, entries);
  setImmediate(() => {
    if (ahead.written === undefined) writeAhead(log, ahead, []).catch(() => undefined);
  });
}

/** Waits until the log has all entries of the state. */
export async function flushAhead(log: LogEnd): Promise<void> {
  const { ahead } = log;
  if (ahead !== undefined) await (ahead.written ?? writeAhead(log, ahead, []));
}

/** Appends the entries that are ahead, and the following ones with them. */
function writeAhead(log: LogEnd, ahead: Ahead, following: readonly SessionEntry[]): Promise<void> {
  const write = async (): Promise<void> => {
    const { store, state } = log;
    const { from } = ahead;
    const entries = [...ahead.entries, ...following];
    try {
      log.checkOwner();
      const { key } = state;
      await store.append({ key, expected: from, entries, ...(state.parent && { parent: state.parent }) });
      applyEntries(state, following);
    } catch (error) {
      state.stale = true;
      if (!(error instanceof KitError) || error.code !== "conflict") throw error;
      await reloadState(store, state);
      const others = (await store.read(state.key, from)).slice(0, state.position - from);
      if (others.length === 0 || others.some(({ operation_id }) => operation_id === log.id)) throw error;
      await appendBehind(entries, log, others);
    }
    // Only after success: no entry may follow one that the log does not have.
    log.ahead = undefined;
  };
  ahead.written = write().catch((error: unknown) => {
    // The calls of such an answer have not started: a resumed operation asks the model again.
    const kept = following.some(hasToolCalls) ? ahead.entries : [...ahead.entries, ...following];
    if (isStoreUnavailable(error)) log.keepUnsaved(kept, ahead.from);
    throw error;
  });
  return ahead.written;
}

function hasToolCalls(entry: SessionEntry): boolean {
  if (entry.type !== "message" || entry.message.role !== "assistant") return false;
  return entry.message.content.some(({ type }) => type === "tool_call");
}

/** Appends the entries with `write`; keeps them in memory while the store is unavailable. */
export function appendOrKeep(
  entries: readonly SessionEntry[],
  log: LogEnd,
  write: (entries: readonly SessionEntry[]) => MaybePromise<void>,
): MaybePromise<void> {
  const { position } = log.state;
  const keepUnsaved = (error: unknown): never => {
    if (isStoreUnavailable(error)) log.keepUnsaved(entries, position);
    throw error;
  };
  try {
    const written = write(entries);
    return written instanceof Promise ? written.catch(keepUnsaved) : written;
  } catch (error) {
    return keepUnsaved(error);
  }
}

/**
 * Writes; on a conflict, applies the other writer's entries and writes `again`, until it succeeds. A deleted session
 * is recreated only with `creates`. Synchronous if the store is.
 */
function orAfterOthers(
  log: LogEnd,
  write: () => MaybePromise<void>,
  { again, creates }: { again: (others: readonly SessionEntry[]) => MaybePromise<void>; creates: boolean },
): MaybePromise<void> {
  const retry = async (refusal: unknown): Promise<void> => {
    const { store, state, id } = log;
    const others: SessionEntry[] = [];
    let error = refusal;
    for (let reload = 0; reload < maxReloads; reload += 1) {
      if (!(error instanceof KitError) || error.code !== "conflict") throw error;
      const came = await store.read(state.key, state.position);
      if (came.some(({ operation_id }) => operation_id === id)) throw error;
      if (came.length > 0) applyNew(state, came);
      else if (creates) await reloadState(store, state);
      else throw error;
      others.push(...came);
      try {
        await again(others);
        return;
      } catch (refused) {
        error = refused;
      }
    }
    throw error;
  };
  let written: MaybePromise<void>;
  try {
    written = write();
  } catch (error) {
    return retry(error);
  }
  if (!(written instanceof Promise)) return;
  log.waits = true;
  return written.catch(retry);
}

/**
 * The entry with a result for every tool call that has none; undefined if all calls have one. A killed process
 * leaves such calls behind, and providers refuse a history with them.
 */
export function closingEntry(
  state: SessionState,
  operation: { readonly id: string; readonly now: () => number },
): SessionEntry | undefined {
  const last = state.messages.at(-1);
  if (last?.role !== "assistant") return undefined;
  const content = last.content.flatMap((part) => (part.type === "tool_call" ? [outcomeUnknown(part)] : []));
  if (content.length === 0) return undefined;
  const message = { role: "tool", content, timestamp: isoTime(operation.now()) } as const;
  return { version: 1, type: "message", operation_id: operation.id, message };
}

/** The text of a result whose call a process was about to run, or was running, when it ended. */
export const outcomeUnknownText =
  "The process ended while this call was running: its outcome is unknown. Check what it did before you repeat it.";

/** A result for a call that a process was about to run, or was running, when it ended. */
function outcomeUnknown(call: ToolCallPart): ToolResultPart {
  return { ...notRun(call, outcomeUnknownText), outcome: "unknown" };
}

/** A result for a call that was not run. */
export function notRun(call: ToolCallPart, text: string): ToolResultPart {
  return {
    type: "tool_result",
    tool_call_id: call.tool_call_id,
    tool: call.tool,
    content: [{ type: "text", text }],
    is_error: true,
  };
}

export interface RebasePlace {
  /** The state, including the other writers' entries. */
  readonly state: SessionState;
  /** The operation that appends. */
  readonly id: string;
  readonly now: () => number;
}

/**
 * Rewrites entries of an operation so that they can follow other writers' entries: an answer follows a line that says
 * it belongs to an earlier message; results of calls, which the other writers have closed, become text.
 */
export function afterOthers(
  entries: readonly SessionEntry[],
  others: readonly SessionEntry[],
  place: RebasePlace,
): readonly SessionEntry[] {
  const [first, ...rest] = entries;
  if (first?.type === "compaction") {
    // The other compaction may have removed more than this one summarizes.
    return others.some(({ type }) => type === "compaction") ? rest : entries;
  }
  if (first?.type !== "message" || !others.some(({ type }) => type === "message")) return entries;
  const { message } = first;
  if (message.role === "user") return entries;
  // A writer that appends a message closes the calls it finds open, so the calls of this operation have results by now.
  const closing = closingEntry(place.state, place);
  const before = closing === undefined ? [] : [closing];
  return message.role === "tool"
    ? [...before, resumeEntry(`${earlier} ${lateResults(message)}`, place), ...rest]
    : [...before, resumeEntry(`${earlier} ${answerNow}`, place), ...entries];
}

const earlier =
  "The conversation went on before you had answered an earlier message of the user, which has no answer yet.";
const answerNow = "Answer it now.";

/** The request to answer an input that other work has overtaken; `input` if the context no longer has it. */
export function askAgain(input: string | undefined): string {
  return input === undefined ? `${earlier} ${answerNow}` : `${earlier} ${answerNow} It was:\n\n${input}`;
}

function lateResults({ content }: ToolMessage): string {
  const results = content.map((result) => `- ${result.tool}: ${textIn(result)}`);
  return `The calls that you had made for it have ended meanwhile, with these results:\n${results.join("\n")}\nGo on with it now.`;
}

function textIn({ content }: ToolResultPart): string {
  return content.map((part) => (part.type === "text" ? part.text : `[image ${part.media_type}]`)).join("");
}

function resumeEntry(text: string, { id, now }: RebasePlace): SessionEntry {
  const message: UserMessage = {
    role: "user",
    content: [{ type: "text", text }],
    timestamp: isoTime(now()),
    source: "resume",
  };
  return { version: 1, type: "message", message, operation_id: id };
}
