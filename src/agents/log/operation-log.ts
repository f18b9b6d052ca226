import { type Clock, isoTime } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import { isStoreUnavailable } from "../../protocol/error-code.ts";
import type {
  FilePart,
  ImagePart,
  ToolCallPart,
  ToolResultPart,
  UserMessage,
} from "../../protocol/message.ts";
import type { RepositoryState } from "../../protocol/repository.ts";
import type { SessionEntry, SessionKey } from "../../protocol/session-entry.ts";
import type { MaybePromise, SessionStore } from "../../stores/contract.ts";
import type { SecretMask } from "../secrets.ts";
import { afterOthers } from "./after-others.ts";
import { applyEntries, applyNew, begunAt, commit, reloadState, type SessionState } from "./session-state.ts";

/** Conflicts with other writers before an append gives up. */
const maxReloads = 20;

export interface OperationLogOptions {
  readonly store: SessionStore;
  readonly state: SessionState;
  /** The operation that appends. */
  readonly id: string;
  /** The id of its input, which the log accepts once; undefined where no other process can have logged it. */
  readonly input: string | undefined;
  readonly clock: Pick<Clock, "now">;
  /** Fires with `lease_lost` once another process has taken over the operation, which then writes nothing more. */
  readonly signal: AbortSignal;
  /** Whether the operation will be resumed, which writes its unsaved work. */
  readonly resumes: boolean;
  /** The state of the repository, for the operation's first entry. */
  readonly repository: RepositoryState | undefined;
  /** Keeps entries in memory while the store is unavailable. */
  readonly unsaved: { add(work: Unsaved): void };
}

/** Work of an operation that its unavailable store could not append. */
export interface Unsaved {
  readonly key: SessionKey;
  readonly parent: SessionKey | undefined;
  readonly operationId: string;
  /** The end of the log that the operation knew. */
  readonly position: number;
  readonly entries: readonly SessionEntry[];
  /** Whether the operation will be resumed, which writes its work. */
  readonly resumes: boolean;
}

interface NewUserMessage {
  readonly text: string;
  /** Images and documents after the text. */
  readonly files?: readonly (FilePart | ImagePart)[] | undefined;
  readonly source?: UserMessage["source"];
  readonly shows?: UserMessage["shows"];
  /** The client's own id of the message. */
  readonly clientId?: string | undefined;
  /** Entries before the message. */
  readonly before?: readonly SessionEntry[];
  /** Whether the message is the operation's input, which the log accepts once. */
  readonly isInput?: boolean;
  /** The operation of another input that brings the message, which the log accepts once. */
  readonly joinedFrom?: string;
}

interface Ahead {
  /** Length of the log before these entries. */
  readonly from: number;
  readonly entries: readonly SessionEntry[];
  /** Undefined until the write has started. */
  written: Promise<void> | undefined;
}

/** Entries to append at the end of the log, after those of other writers. */
interface Appended {
  readonly entries: readonly SessionEntry[];
  /**
   * Whether the entries follow from the history that the operation knows. Other entries, such as an input, also create a
   * deleted session again.
   */
  readonly isReply: boolean;
  /** Entries of other writers that a reply follows and its operation did not know. */
  readonly others?: readonly SessionEntry[];
  /** The id of an input that the log accepts once. */
  readonly input?: string | undefined;
  /** Whether they are kept in memory while the store is unavailable. */
  readonly isKept?: boolean;
}

/** The end of a session's log, as one operation appends to it. Synchronous if the store is. */
export class OperationLog {
  readonly #options: OperationLogOptions;
  /** Whether the store appends asynchronously: only then does batching appends help. */
  #waits = false;
  /** Entries that the state has and the log does not have yet. */
  #ahead: Ahead | undefined;
  /** The newest pending commit: parallel commits would conflict at the same position. */
  #last: Promise<void> | undefined;

  constructor(options: OperationLogOptions) {
    this.#options = options;
  }

  /**
   * Appends at the current end of the log; entries of another process are read first. For entries that do not depend
   * on the history, such as a user's message. `input` is true for the operation's input, and the id of another input.
   *
   * Calls that a killed process left without a result get one first. Throws `conflict` if another process
   * works on this operation. `isKept` as for `commit`.
   */
  append(
    entries: readonly SessionEntry[],
    input: boolean | string = false,
    isKept = false,
  ): MaybePromise<void> {
    if (this.#ahead !== undefined) return this.#appendAfterFlush(entries, input, isKept);
    const id = input === true ? this.#options.input : input || undefined;
    return this.#append({ entries, isReply: false, input: id, isKept });
  }

  // Functions that few appends need stand in methods of their own: V8 keeps what a function closes over in the heap, from its beginning on.
  async #appendAfterFlush(
    entries: readonly SessionEntry[],
    input: boolean | string,
    isKept: boolean,
  ): Promise<void> {
    await this.#flushBefore(entries, isKept);
    await this.append(entries, input, isKept);
  }

  /** Appends a message of the user, or of kit itself, to the history. */
  appendUserMessage(
    { text, files = none, source, shows, clientId, before = none, isInput, joinedFrom }: NewUserMessage,
    mask: SecretMask | undefined,
  ): MaybePromise<void> {
    const part = { type: "text", text: mask?.(text) ?? text } as const;
    const message: { -readonly [Field in keyof UserMessage]: UserMessage[Field] } = {
      role: "user",
      content: files.length === 0 ? [part] : [part, ...files],
      timestamp: isoTime(this.#options.clock.now()),
    };
    if (source !== undefined) message.source = source;
    if (shows !== undefined) message.shows = shows;
    if (clientId !== undefined) message.client_id = clientId;
    if (joinedFrom !== undefined) message.joined_from = joinedFrom;
    const entry = { version: 1, type: "message", message, operation_id: this.#options.id } as const;
    return this.append(before.length === 0 ? [entry] : [...before, entry], joinedFrom ?? isInput);
  }

  /**
   * Appends entries that follow from the history that the operation knows: an answer of the model, results of its
   * calls. If another process has continued the session, the entries follow at the end with a note of what they
   * answer. Throws `conflict` if that process works on this operation, or the session was deleted.
   *
   * @param isKept Whether the entries cannot be produced again, such as tool results. While the store is unavailable, they are
   * kept in memory, and written first once it is back; the commit rejects all the same.
   */
  commit(entries: readonly SessionEntry[], isKept = false): MaybePromise<void> {
    const last = this.#last;
    const written =
      last === undefined ? this.#commit(entries, isKept) : this.#commitAfter(last, entries, isKept);
    return written === undefined ? undefined : this.#track(written);
  }

  async #commitAfter(last: Promise<void>, entries: readonly SessionEntry[], isKept: boolean): Promise<void> {
    await last;
    await this.#commit(entries, isKept);
  }

  /**
   * Like `commit`, for a caller that calls the model without waiting for the store: the state has the entries at once;
   * the log gets them in the next turn of the event loop, or together with an earlier answer. The next commit or
   * `stored`, one of which must follow, throws what failed.
   */
  commitAhead(entries: readonly SessionEntry[]): MaybePromise<void> {
    const written = this.#last === undefined ? this.#addAhead(entries) : this.#addAfter(this.#last, entries);
    return written === undefined ? undefined : this.#track(written);
  }

  async #addAfter(last: Promise<void>, entries: readonly SessionEntry[]): Promise<void> {
    await last;
    await this.#addAhead(entries);
  }

  #addAhead(entries: readonly SessionEntry[]): MaybePromise<void> {
    if (this.#waits && this.#ahead === undefined) this.#waitToWrite(entries);
    else return this.#commit(entries, true);
  }

  #waitToWrite(entries: readonly SessionEntry[]): void {
    const { state } = this.#options;
    const ahead: Ahead = { from: state.position, entries, written: undefined };
    this.#ahead = ahead;
    applyEntries(state, entries);
    setImmediate(() => {
      if (ahead.written === undefined) this.#writeAhead(ahead, []).catch(() => undefined);
    });
  }

  /** Waits until the log has all entries of `commitAhead`; throws if writing them failed. */
  stored(): MaybePromise<void> {
    return this.#ahead === undefined ? undefined : this.#flush();
  }

  /** Later commits wait for a pending one. */
  #track(written: Promise<void>): Promise<void> {
    const end = (): void => {
      if (this.#last === pending) this.#last = undefined;
    };
    const pending = written.then(end, end);
    this.#last = pending;
    return written;
  }

  #commit(entries: readonly SessionEntry[], isKept: boolean): MaybePromise<void> {
    const ahead = this.#ahead;
    if (ahead === undefined) return this.#append({ entries, isReply: true, isKept });
    // An answer that arrives before the pending append starts joins it: both are written, or neither.
    if (ahead.written === undefined && entries[0]?.type === "message")
      return this.#writeAhead(ahead, entries);
    return this.#commitAfterFlush(entries, isKept);
  }

  async #commitAfterFlush(entries: readonly SessionEntry[], isKept: boolean): Promise<void> {
    await this.#flushBefore(entries, isKept);
    await this.#commit(entries, isKept);
  }

  #append(appended: Appended): MaybePromise<void> {
    this.#checkOwner();
    let written: MaybePromise<void>;
    try {
      written = this.#write(appended, appended.others ?? []);
    } catch (error) {
      return this.#appendAgain(appended, error);
    }
    if (!(written instanceof Promise)) return;
    this.#waits = true;
    return this.#appendAgainIfRefused(written, appended);
  }

  #appendAgainIfRefused(written: Promise<void>, appended: Appended): Promise<void> {
    return written.catch((error) => this.#appendAgain(appended, error));
  }

  /** On a conflict, applies the other writers' entries and appends after them, until that succeeds. */
  async #appendAgain(appended: Appended, refusal: unknown): Promise<void> {
    const { store, state, id } = this.#options;
    const { position } = state;
    const others = [...(appended.others ?? [])];
    let error = refusal;
    try {
      for (let reload = 0; reload < maxReloads; reload += 1) {
        if (!(error instanceof KitError) || error.code !== "conflict") throw error;
        const newEntries = await store.read(state.key, state.position);
        if (newEntries.some(({ operation_id }) => operation_id === id)) throw error;
        if (newEntries.length > 0) {
          applyNew(state, newEntries);
          if (state.stale) await reloadState(store, state);
        } else if (appended.isReply) throw error;
        else await reloadState(store, state);
        others.push(...newEntries);
        try {
          await this.#write(appended, others);
          return;
        } catch (refused) {
          error = refused;
        }
      }
      throw error;
    } catch (last) {
      if (appended.isKept === true && isStoreUnavailable(last)) this.#keepUnsaved(appended.entries, position);
      throw last;
    }
  }

  #write({ entries, isReply, input }: Appended, others: readonly SessionEntry[]): MaybePromise<void> {
    const options = this.#options;
    let all = entries;
    if (!isReply || others.length > 0) {
      const closing = closingEntry(options.state, options);
      if (isReply) all = afterOthers(entries, others, { id: options.id, clock: options.clock, closing });
      else if (closing !== undefined) all = [closing, ...entries];
    }
    if (all.length === 0) return undefined;
    return commit(options, options.repository === undefined ? all : this.#withRepository(all), input);
  }

  #withRepository(entries: readonly SessionEntry[]): readonly SessionEntry[] {
    const { repository, state, id } = this.#options;
    if (begunAt(state, id) !== undefined) return entries;
    const first = entries.find(({ operation_id }) => operation_id === id);
    return entries.map((entry) => (entry === first ? { ...entry, repository } : entry));
  }

  /** Waits until the log has all entries of the state. */
  async #flush(): Promise<void> {
    const ahead = this.#ahead;
    if (ahead !== undefined) await (ahead.written ?? this.#writeAhead(ahead, []));
  }

  /**
   * Writes what waits before these entries. If the store is unavailable, entries that must be kept are kept in memory, unless other
   * work of the session is kept already: they would follow entries that the log may never have.
   */
  async #flushBefore(entries: readonly SessionEntry[], isKept: boolean): Promise<void> {
    const { position } = this.#options.state;
    try {
      await this.#flush();
    } catch (error) {
      if (isKept && isStoreUnavailable(error)) this.#keepUnsaved(entries, position);
      throw error;
    }
  }

  /** Appends the entries of `commitAhead`, together with `following`. */
  #writeAhead(ahead: Ahead, following: readonly SessionEntry[]): Promise<void> {
    ahead.written = this.#writeTogether(ahead, following);
    return ahead.written;
  }

  async #writeTogether({ from, entries: first }: Ahead, following: readonly SessionEntry[]): Promise<void> {
    const { store, state } = this.#options;
    const { key, parent } = state;
    try {
      try {
        this.#checkOwner();
        await store.append({ key, expected: from, entries: [...first, ...following], parent });
        applyEntries(state, following);
      } catch (error) {
        await this.#writeAfterOthers(error, from, [...first, ...following]);
      }
    } catch (error) {
      // The calls of such an answer have not started: a resumed operation asks the model again.
      const unsaved = following.some(hasToolCalls) ? first : [...first, ...following];
      if (isStoreUnavailable(error)) this.#keepUnsaved(unsaved, from);
      throw error;
    }
    // Only after success: no entry may follow one that the log does not have.
    this.#ahead = undefined;
  }

  /** On a conflict, writes the entries after those of other writers. */
  async #writeAfterOthers(error: unknown, from: number, entries: readonly SessionEntry[]): Promise<void> {
    const { store, state, id } = this.#options;
    state.stale = true;
    if (!(error instanceof KitError) || error.code !== "conflict") throw error;
    await reloadState(store, state);
    const others = (await store.read(state.key, from)).slice(0, state.position - from);
    if (others.length === 0 || others.some(({ operation_id }) => operation_id === id)) throw error;
    await this.#append({ entries, isReply: true, others });
  }

  #keepUnsaved(entries: readonly SessionEntry[], position: number): void {
    const { state, id: operationId, resumes, unsaved } = this.#options;
    const { key, parent } = state;
    unsaved.add({ key, parent, operationId, position, entries, resumes });
  }

  /** Throws if another process has taken over the operation. */
  #checkOwner(): void {
    const { aborted, reason } = this.#options.signal;
    if (aborted && reason instanceof KitError && reason.code === "lease_lost") throw reason;
  }
}

const none: readonly never[] = [];

function hasToolCalls(entry: SessionEntry): boolean {
  if (entry.type !== "message" || entry.message.role !== "assistant") return false;
  return entry.message.content.some(({ type }) => type === "tool_call");
}

/**
 * The entry with a result for every tool call that has none; undefined if all calls have one. A killed process
 * leaves such calls behind, and providers refuse a history with them.
 */
export function closingEntry(
  state: SessionState,
  { id, clock }: { readonly id: string; readonly clock: Pick<Clock, "now"> },
): SessionEntry | undefined {
  const last = state.messages.at(-1);
  if (last?.role !== "assistant") return undefined;
  const content: ToolResultPart[] = [];
  for (const part of last.content) if (part.type === "tool_call") content.push(outcomeUnknown(part));
  if (content.length === 0) return undefined;
  const message = { role: "tool", content, timestamp: isoTime(clock.now()) } as const;
  return { version: 1, type: "message", operation_id: id, message };
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
