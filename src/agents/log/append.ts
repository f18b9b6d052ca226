import { isoTime } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import type { ToolCallPart, ToolMessage, ToolResultPart, UserMessage } from "../../protocol/message.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import { isStoreUnavailable } from "../../protocol/store-fault.ts";
import type { MaybePromise, SessionStore } from "../../stores/contract.ts";
import { applyEntries, commit, reloadState, type SessionState, takeIn } from "./session-state.ts";

/** Times that another writer may be ahead before an append gives up. */
const maxReloads = 20;

export interface LogEnd {
  readonly store: SessionStore;
  readonly state: SessionState;
  /** The operation that appends. */
  readonly id: string;
  readonly now: () => number;
  /** Throws where the operation may write no more. */
  readonly checkOwner: () => void;
  /** Has entries that the store, being away, could not take behind a position stay in memory: see `Operation.keeping`. */
  readonly keep: (entries: readonly SessionEntry[], position: number) => void;
  /** Whether the store made an append wait: only then is it worth while to append things together. */
  waits: boolean;
  /** What the state has and the log has not yet. */
  ahead: Ahead | undefined;
}

interface Ahead {
  /** How long the log was before it. */
  readonly from: number;
  readonly entries: readonly SessionEntry[];
  /** Undefined until it is on its way. */
  written: Promise<void> | undefined;
}

/**
 * Appends at the end of the log, wherever that is by now: what another process has added is read
 * first. For what holds whatever came before it, such as a user's words; with `input`, the id of what
 * the log takes once.
 *
 * Calls that a killed process left without a result are given one before. Throws `conflict` where another
 * process does this operation meanwhile.
 */
export function appendLatest(
  entries: readonly SessionEntry[],
  log: LogEnd,
  input?: string,
): MaybePromise<void> {
  if (log.ahead !== undefined) return settled(log).then(() => appendLatest(entries, log, input));
  log.checkOwner();
  const write = (): MaybePromise<void> => {
    const closing = closingEntry(log.state, log);
    const all = closing === undefined ? entries : [closing, ...entries];
    return all.length > 0 ? commit(log, all, input) : undefined;
  };
  return orAfterOthers(log, write, { again: write, creates: true });
}

/**
 * Appends what follows from the history that the operation knows: an answer of the model, results of its
 * calls. Where another process has gone on with the session, it comes at the end, and says there what it
 * belongs to. Throws `conflict` where that process does this operation, or the session was deleted.
 */
export function appendWork(entries: readonly SessionEntry[], log: LogEnd): MaybePromise<void> {
  const { ahead } = log;
  if (ahead !== undefined) {
    // An answer that came at once goes along: one append, all of it or nothing.
    if (ahead.written === undefined && entries[0]?.type === "message") return writeAhead(log, ahead, entries);
    return settled(log).then(() => appendWork(entries, log));
  }
  return appendBehind(entries, log, []);
}

/** Behind what `others` have added since the operation's last entry, which the state has, and behind who else comes before. */
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
 * Does what `appendWork` does, for a caller that need not wait for the store to ask the model: the state has the entries
 * at once, and the log when the process turns to its next events, or with the answer if that is there before. What fails
 * is thrown by the next append, or by `settled`, one of which has to follow.
 */
export function appendAhead(entries: readonly SessionEntry[], log: LogEnd): MaybePromise<void> {
  if (!log.waits || log.ahead !== undefined)
    return appendKeeping(entries, log, (all) => appendWork(all, log));
  const ahead: Ahead = { from: log.state.position, entries, written: undefined };
  log.ahead = ahead;
  applyEntries(log.state, entries);
  setImmediate(() => {
    if (ahead.written === undefined) writeAhead(log, ahead, []).catch(() => undefined);
  });
}

/** Resolves once the log has all that the state has. */
export async function settled(log: LogEnd): Promise<void> {
  const { ahead } = log;
  if (ahead !== undefined) await (ahead.written ?? writeAhead(log, ahead, []));
}

/** Appends what is ahead, and with it what follows. */
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
    // Not where it failed: nothing is to follow what the log does not have.
    log.ahead = undefined;
  };
  ahead.written = write().catch((error: unknown) => {
    // Calls that an answer asks for have not begun: the model is asked again.
    const kept = following.some(asksForCalls) ? ahead.entries : [...ahead.entries, ...following];
    if (isStoreUnavailable(error)) log.keep(kept, ahead.from);
    throw error;
  });
  return ahead.written;
}

function asksForCalls(entry: SessionEntry): boolean {
  if (entry.type !== "message" || entry.message.role !== "assistant") return false;
  return entry.message.content.some(({ type }) => type === "tool_call");
}

/** Has `write` append the entries, which stay in memory where the store is away. */
export function appendKeeping(
  entries: readonly SessionEntry[],
  log: LogEnd,
  write: (entries: readonly SessionEntry[]) => MaybePromise<void>,
): MaybePromise<void> {
  const { position } = log.state;
  const keep = (error: unknown): never => {
    if (isStoreUnavailable(error)) log.keep(entries, position);
    throw error;
  };
  try {
    const written = write(entries);
    return written instanceof Promise ? written.catch(keep) : written;
  } catch (error) {
    return keep(error);
  }
}

/**
 * Writes; where another writer was ahead, takes in what has come and writes `again`, until it is in. A session that
 * was deleted is begun anew only with `creates`. Waits only where the store does.
 */
function orAfterOthers(
  log: LogEnd,
  write: () => MaybePromise<void>,
  { again, creates }: { again: (others: readonly SessionEntry[]) => MaybePromise<void>; creates: boolean },
): MaybePromise<void> {
  const goOn = async (refusal: unknown): Promise<void> => {
    const { store, state, id } = log;
    const others: SessionEntry[] = [];
    let error = refusal;
    for (let reload = 0; reload < maxReloads; reload += 1) {
      if (!(error instanceof KitError) || error.code !== "conflict") throw error;
      const came = await store.read(state.key, state.position);
      if (came.some(({ operation_id }) => operation_id === id)) throw error;
      if (came.length > 0) takeIn(state, came);
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
    return goOn(error);
  }
  if (!(written instanceof Promise)) return;
  log.waits = true;
  return written.catch(goOn);
}

/**
 * The entry that gives every tool call without a result one that says so; undefined where all have
 * theirs. A process that was killed leaves such calls behind, and providers refuse a history that has
 * them.
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
export function outcomeUnknown(call: ToolCallPart): ToolResultPart {
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
  /** With what the others have added. */
  readonly state: SessionState;
  /** The operation whose entries are to follow. */
  readonly id: string;
  readonly now: () => number;
}

/**
 * Entries of an operation as they can stand behind what others have added to the session: an answer behind a line
 * that says it belongs to something earlier; results of calls, which the others have found without any, as text.
 */
export function afterOthers(
  entries: readonly SessionEntry[],
  others: readonly SessionEntry[],
  place: RebasePlace,
): readonly SessionEntry[] {
  const [first, ...rest] = entries;
  if (first?.type === "compaction") {
    // Theirs may have left more out of the context than this one sums up.
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

/** What asks for the answer to an input that others have gone past; `input` where the context no longer has it. */
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
