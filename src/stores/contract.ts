import type { KitError } from "../base/kit-error.ts";
import type { SessionEntry, SessionInfo, SessionKey, TouchedSessionPage } from "../protocol/session-entry.ts";
import type { WorkspaceStore } from "../protocol/workspace-store.ts";

/** A value, or the promise of one: a store in the same process need not make its caller wait. */
export type MaybePromise<Value> = Value | Promise<Value>;

export interface AppendRequest {
  readonly key: SessionKey;
  /** How many entries the writer has seen. Another number in the store is a `conflict`. */
  readonly expected: number;
  readonly entries: readonly SessionEntry[];
  /**
   * The id of the input that the entries bring into the session, which takes each once: where it has one of this
   * id, the append is a `conflict`.
   */
  readonly input?: string | undefined;
  /**
   * The fence of the writer's lease on the instance. An append with a lower one than `claim` was given for the instance is
   * `lease_lost`: another process works there now. Without one, an append is not checked.
   */
  readonly fence?: number | undefined;
  /**
   * The lease that `fence` belongs to, as `claim` was given it; default: the lease on the key's instance. Agents of a workflow run
   * write under the lease of the run.
   */
  readonly lease_on?: { readonly agent: string; readonly instance_id: string } | undefined;
  /** Recorded when the first append creates the session. */
  readonly parent?: SessionKey | undefined;
}

/** A page of the sessions of a store. */
export interface SessionListing {
  readonly limit: number;
  readonly cursor?: string | undefined;
  readonly agent?: string | undefined;
  readonly instance_id?: string | undefined;
  /** By when they were made; default `oldest`. A cursor belongs to its order. */
  readonly order?: "oldest" | "newest" | undefined;
}

/**
 * Append-only logs, one per session.
 *
 * - `append` is atomic: all entries or none, at exactly `expected`, else `KitError` `conflict`. Its
 *   cost does not depend on how long the log is. An `input` that the session has is refused in the same step.
 * - `read` gives the entries after a position, oldest first. A session that was never written is
 *   empty, not an error.
 * - `delete` removes the session and every session below it (`parent`), in one step.
 * - Entries come back as they went in. What is stored carries `version`; readers upgrade old ones.
 */
export interface SessionStore {
  append(request: AppendRequest): MaybePromise<void>;
  read(key: SessionKey, after?: number): MaybePromise<readonly SessionEntry[]>;
  info(key: SessionKey): MaybePromise<SessionInfo | undefined>;
  /** The sessions of an instance, or of all instances of an agent, oldest first. */
  list(filter: {
    readonly agent: string;
    readonly instance_id?: string;
  }): MaybePromise<readonly SessionInfo[]>;
  delete(key: SessionKey): MaybePromise<void>;
  /**
   * The sessions of all agents, or of those that are asked for, in the order in which they were made: at most `limit`
   * (from 1) behind a cursor. A store
   * without this and `deleteUntouched` keeps everything: retention passes it over.
   */
  listAll?(page: SessionListing): MaybePromise<TouchedSessionPage>;
  /**
   * Does what `delete` does if nothing was appended, to the session or to one below it, at `before` (ms since 1970) or
   * later. The store looks in the step that deletes, so what came meanwhile stays. Whether it did.
   */
  deleteUntouched?(key: SessionKey, before: number): MaybePromise<boolean>;
  /**
   * Says that the holder of this fence works in the instance from now on: appends with a lower one are refused, those that
   * have begun are over when it resolves. A lower fence than one that was claimed before changes nothing. A store without it does not
   * check fences; an engine with several nodes needs one that does. For the lease on a workflow run, the agent is "" and the instance
   * the run's id: its fence is compared with those of appends that name it in `lease_on`.
   */
  claim?(
    instance: { readonly agent: string; readonly instance_id: string },
    fence: number,
  ): MaybePromise<void>;
  /**
   * Keeps a text under a name until `pruneTexts` removes it: what prompts consist of besides the log, such as system prompts and
   * descriptions of tools. The name is a digest of the text, so keeping it again only renews its age. A store without it and
   * `readText` keeps none: a turn is then shown without these parts.
   */
  keepText?(name: string, text: string): MaybePromise<void>;
  /** The text of that name; undefined where there is none. */
  readText?(name: string): MaybePromise<string | undefined>;
  /** Removes the texts that were last kept before then (ms since 1970), and gives how many. */
  pruneTexts?(before: number): MaybePromise<number>;
  /** Keeps workspaces beside the sessions, for `sandbox.persist`. A store without it keeps none. */
  readonly workspaces?: WorkspaceStore;
  /** The problem that stops the store until an operator fixes it, such as a file that is gone. */
  problem?(): KitError | undefined;
  close(): MaybePromise<void>;
}
