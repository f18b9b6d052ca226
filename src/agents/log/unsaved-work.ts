import { endsWithin } from "../../base/abort.ts";
import type { Clock } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import { isStoreUnavailable } from "../../protocol/error-code.ts";
import type { SessionEntry, SessionKey } from "../../protocol/session-entry.ts";
import { sessionName } from "../../protocol/session-name.ts";
import type { SessionStore } from "../../stores/contract.ts";
import { afterOthers } from "./after-others.ts";
import { closingEntry, type Unsaved } from "./operation-log.ts";
import { commit, loadState, reloadState, type SessionState } from "./session-state.ts";

interface Kept extends Unsaved {
  readonly chars: number;
  writing: Promise<void> | undefined;
}

/** Limit of unsaved work per store, in characters of JSON; further work is lost. */
const maxChars = 64 * 1024 * 1024;
const firstPauseMs = 250;
const longestPauseMs = 5_000;
/** Conflicts with other writers before an append gives up. */
const maxReloads = 20;

/**
 * Finished work that this process keeps in memory while its store is unavailable, such as tool results that cannot be
 * produced again. The session's next operation writes it first; work that no caller will resume is retried until written.
 */
export class UnsavedWork {
  readonly #store: SessionStore;
  readonly #clock: Pick<Clock, "now">;
  /** By the name of the session. */
  readonly ofSessions: Map<string, Kept> = new Map();
  #chars = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #pauseMs = firstPauseMs;

  constructor(store: SessionStore, clock: Pick<Clock, "now">) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Returns false if the limit is reached. */
  add(unsaved: Unsaved): boolean {
    const name = sessionName(unsaved.key);
    const chars = JSON.stringify(unsaved.entries).length;
    if (this.ofSessions.has(name) || this.#chars + chars > maxChars) return false;
    this.ofSessions.set(name, { ...unsaved, chars, writing: undefined });
    this.#chars += chars;
    if (!unsaved.resumes) this.#tryLater();
    return true;
  }

  /** Undefined if the session has no unsaved work. Rejects with `store_unavailable` while the store is unavailable. */
  write(key: SessionKey): Promise<void> | undefined {
    const work = this.ofSessions.get(sessionName(key));
    if (work === undefined) return undefined;
    work.writing ??= this.#append(work).then(
      () => this.#forget(work),
      (error: unknown) => {
        work.writing = undefined;
        // An available store refuses these entries for good.
        if (!isStoreUnavailable(error)) this.#forget(work);
        throw error;
      },
    );
    return work.writing;
  }

  /** Tries once more within `patienceMs`; returns how many operations' work is lost with this process. */
  async close(patienceMs: number): Promise<number> {
    clearTimeout(this.#timer);
    const writes = Promise.allSettled([...this.ofSessions.values()].map(({ key }) => this.write(key)));
    await endsWithin(patienceMs, writes);
    return this.ofSessions.size;
  }

  #forget(work: Kept): void {
    if (this.ofSessions.delete(sessionName(work.key))) this.#chars -= work.chars;
  }

  /** One timer for all sessions, since they share the store. It does not keep the process alive. */
  #tryLater(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => void this.#tryAll(), this.#pauseMs * (0.5 + Math.random() / 2));
    this.#timer.unref();
  }

  async #tryAll(): Promise<void> {
    let isAway = false;
    for (const { key, resumes } of [...this.ofSessions.values()]) {
      if (resumes) continue;
      try {
        await this.write(key);
      } catch (error) {
        isAway = isStoreUnavailable(error);
        if (isAway) break;
      }
    }
    this.#timer = undefined;
    this.#pauseMs = isAway ? Math.min(longestPauseMs, this.#pauseMs * 2) : firstPauseMs;
    if (isAway) this.#tryLater();
  }

  async #append(work: Kept): Promise<void> {
    const { key, parent, operationId: id, position, entries } = work;
    const state = await loadState(this.#store, key, parent);
    for (let reload = 0; ; reload += 1) {
      // The session was deleted meanwhile.
      if (state.position < position) return;
      const others = state.position > position ? await this.#store.read(key, position) : [];
      // The append had succeeded after all, or another process has continued the operation.
      if (others.some(({ operation_id }) => operation_id === id)) return;
      const context = { state, id, clock: this.#clock };
      const rebased = others.length === 0 ? entries : rebaseEntries(entries, others, context);
      try {
        if (rebased.length > 0) await commit({ store: this.#store, state }, rebased);
        return;
      } catch (error) {
        if (!(error instanceof KitError) || error.code !== "conflict" || reload >= maxReloads) throw error;
        await reloadState(this.#store, state);
      }
    }
  }
}

/** A user's entry, such as the output of their command, follows the results of calls that other writers have made. */
function rebaseEntries(
  entries: readonly SessionEntry[],
  others: readonly SessionEntry[],
  context: { readonly state: SessionState; readonly id: string; readonly clock: Pick<Clock, "now"> },
): readonly SessionEntry[] {
  const [first] = entries;
  const closing = closingEntry(context.state, context);
  if (first?.type !== "message" || first.message.role !== "user")
    return afterOthers(entries, others, { ...context, closing });
  return closing === undefined ? entries : [closing, ...entries];
}

const ofStores = new WeakMap<SessionStore, UnsavedWork>();

/** The unsaved work of a store in this process, shared by all agents. */
export function unsavedOf(store: SessionStore, clock: Pick<Clock, "now">): UnsavedWork {
  const existing = ofStores.get(store);
  if (existing !== undefined) return existing;
  const created = new UnsavedWork(store, clock);
  ofStores.set(store, created);
  return created;
}
