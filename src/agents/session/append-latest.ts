import { KitError } from "../../base/kit-error.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { MaybePromise, SessionStore } from "../../stores/contract.ts";
import { closingEntry } from "./closing-entry.ts";
import { commit, reloadState, type SessionState } from "./session-state.ts";

/** Times that another writer may be ahead before an append gives up. */
const maxReloads = 3;

export interface LogEnd {
  readonly store: SessionStore;
  readonly state: SessionState;
  /** The operation that appends. */
  readonly id: string;
  readonly now: () => number;
}

/**
 * Appends at the end of the log, wherever that is by now: what another process has added is read
 * first. For what holds whatever came before it, such as a user's words; an answer of the model
 * belongs to the history that it was asked with, and is committed at that position or not at all.
 *
 * Calls that a killed process left without a result are given one before.
 */
export function appendLatest(entries: readonly SessionEntry[], log: LogEnd): MaybePromise<void> {
  let written: MaybePromise<void>;
  try {
    written = appendHere(entries, log);
  } catch (error) {
    return appendAfterOthers(entries, log, error);
  }
  if (written instanceof Promise) return written.catch((error) => appendAfterOthers(entries, log, error));
}

function appendHere(entries: readonly SessionEntry[], log: LogEnd): MaybePromise<void> {
  const closing = closingEntry(log.state, { id: log.id, now: log.now });
  const all = closing === undefined ? entries : [closing, ...entries];
  if (all.length > 0) return commit(log.store, log.state, all);
}

async function appendAfterOthers(
  entries: readonly SessionEntry[],
  log: LogEnd,
  conflict: unknown,
): Promise<void> {
  let error = conflict;
  for (let reload = 0; reload < maxReloads; reload += 1) {
    if (!(error instanceof KitError) || error.code !== "conflict") throw error;
    await reloadState(log.store, log.state);
    try {
      await appendHere(entries, log);
      return;
    } catch (next) {
      error = next;
    }
  }
  throw error;
}
