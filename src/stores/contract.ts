import type { KitError } from "../base/kit-error.ts";
import type { SessionEntry, SessionInfo, SessionKey, TouchedSessionPage } from "../protocol/session-entry.ts";
import type { SessionOrder, SessionState } from "../protocol/session-page.ts";
import type { WorkspaceStore } from "../protocol/workspace-store.ts";

/** A value or its promise, so that a store in the same process can answer synchronously. */
export type MaybePromise<Value> = Value | Promise<Value>;

export interface AppendRequest {
  readonly key: SessionKey;
  /** The number of entries that the writer has seen. If the session has another number, `append` throws `conflict`. */
  readonly expected: number;
  readonly entries: readonly SessionEntry[];
  /**
   * The id of the input that the entries record. A session accepts each input once: if it has this id already,
   * `append` throws `conflict`.
   */
  readonly input?: string | undefined;
  /**
   * The fence of the writer's lease on the instance. If `claim` recorded a higher one, another process owns the instance,
   * and `append` throws `lease_lost`. Without a fence, the append is not checked.
   */
  readonly fence?: number | undefined;
  /**
   * The lease that `fence` belongs to, as passed to `claim`; default: the lease on the key's instance. Agents of a workflow
   * run write under the lease of the run.
   */
  readonly lease_on?: { readonly agent: string; readonly instance_id: string } | undefined;
  /** The parent session, recorded by the append that creates the session. */
  readonly parent?: SessionKey | undefined;
}

/** Selects a page of a store's sessions. */
export interface SessionListing {
  readonly limit: number;
  readonly cursor?: string | undefined;
  readonly agent?: string | undefined;
  readonly instance_id?: string | undefined;
  /**
   * `oldest` (default) and `newest`: by time of creation. `recent`: the last used first, to about a second. A cursor is valid for
   * its order only.
   */
  readonly order?: SessionOrder | undefined;
  /** Only sessions whose title, agent, instance or name contains this text, in upper or lower case. */
  readonly search?: string | undefined;
  /** Only sessions that were last used at this time or later; ms since 1970. */
  readonly since?: number | undefined;
  /** Only sessions that were last used before this time; ms since 1970. */
  readonly until?: number | undefined;
  /** Leaves out the sessions of tasks. */
  readonly parents_only?: boolean | undefined;
  readonly state?: SessionState | undefined;
  /** Only these sessions. */
  readonly only?: readonly SessionKey[] | undefined;
  /** Leaves these sessions out. */
  readonly except?: readonly SessionKey[] | undefined;
  /** Asks for `total`: the number of sessions on all pages. */
  readonly count?: boolean | undefined;
}

/**
 * Append-only logs, one per session.
 *
 * - `append` is atomic: it writes all entries or none, at exactly `expected`; otherwise it throws `KitError` `conflict`.
 *   Its cost does not depend on the length of the log. An `input` that the session has already is refused in the same step.
 * - `read` returns the entries after a position, oldest first. A session without entries is empty, not an error.
 * - `delete` removes the session and all its descendants (`parent`) in one step.
 * - Entries are returned unchanged. Stored entries have a `version`; readers upgrade old ones.
 */
export interface SessionStore {
  append(request: AppendRequest): MaybePromise<void>;
  read(key: SessionKey, after?: number): MaybePromise<readonly SessionEntry[]>;
  info(key: SessionKey): MaybePromise<SessionInfo | undefined>;
  /** Lists the sessions of an instance, or of all instances of an agent, oldest first. */
  list(filter: {
    readonly agent: string;
    readonly instance_id?: string;
  }): MaybePromise<readonly SessionInfo[]>;
  delete(key: SessionKey): MaybePromise<void>;
  /**
   * Lists the sessions of all agents, or those that match: at most `limit` (from 1) after a cursor. Retention skips a store
   * without this method and `deleteUntouched`. A store can ignore every field but `limit` and `cursor`: kit then filters each
   * page itself. It can return sessions without a title, state, cost and tokens.
   */
  listAll?(page: SessionListing): MaybePromise<TouchedSessionPage>;
  /**
   * Deletes like `delete`, unless something was appended to the session or a descendant at `before` (ms since 1970) or
   * later. Checks in the same step, so that concurrent appends are not lost. Returns whether it deleted the session.
   */
  deleteUntouched?(key: SessionKey, before: number): MaybePromise<boolean>;
  /**
   * Records that the holder of this fence owns the instance: appends with a lower fence are refused, and appends that have
   * begun are finished when `claim` resolves. A fence lower than a recorded one changes nothing. A store without this
   * method does not check fences; an engine with several nodes needs it. For the lease on a workflow run, the agent is ""
   * and the instance the run's id: its fence is compared with appends that name it in `lease_on`.
   */
  claim?(
    instance: { readonly agent: string; readonly instance_id: string },
    fence: number,
  ): MaybePromise<void>;
  /**
   * Stores a text under a name until `pruneTexts` removes it: parts of prompts that are not in the log, such as system
   * prompts and tool descriptions. The name is a digest of the text, so storing it again only renews its time. With a
   * store that lacks this method and `readText`, turns are shown without these parts.
   */
  keepText?(name: string, text: string): MaybePromise<void>;
  /** Returns the text of a name; `undefined` if there is none. */
  readText?(name: string): MaybePromise<string | undefined>;
  /** Removes the texts that were last stored before `before` (ms since 1970), and returns their number. */
  pruneTexts?(before: number): MaybePromise<number>;
  /** Stores workspaces together with the sessions, for `sandbox.persist`. Absent if the store does not support it. */
  readonly workspaces?: WorkspaceStore;
  /** Returns the problem that stops the store until an operator fixes it, such as a deleted file. */
  problem?(): KitError | undefined;
  close(): MaybePromise<void>;
}
