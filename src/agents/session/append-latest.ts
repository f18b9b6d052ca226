import { KitError } from "../../base/kit-error.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { MaybePromise, SessionStore } from "../../stores/contract.ts";
import { closingEntry } from "./closing-entry.ts";
import { afterOthers } from "./rebase.ts";
import { commit, reloadState, type SessionState, takeIn } from "./session-state.ts";

/** Times that another writer may be ahead before an append gives up. */
const maxReloads = 20;

export interface LogEnd {
  readonly store: SessionStore;
  readonly state: SessionState;
  /** The operation that appends. */
  readonly id: string;
  readonly now: () => number;
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
  const again = (others: readonly SessionEntry[]): MaybePromise<void> => {
    const rebased = afterOthers(entries, others, log);
    return rebased.length > 0 ? commit(log, rebased) : undefined;
  };
  return orAfterOthers(log, () => commit(log, entries), { again, creates: false });
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
  if (written instanceof Promise) return written.catch(goOn);
}
