import type { SessionKey } from "./session-entry.ts";

/** The files of a session as a store keeps them: a manifest, and the content of its files in pieces. */
export interface StoredWorkspace {
  /** From 1; rises with each change. */
  readonly version: number;
  readonly manifest: string;
}

export interface WorkspaceCommit {
  /** The version that the writer has seen; 0 for none. Another one in the store is a `conflict`. */
  readonly expected: number;
  readonly manifest: string;
  /** The pieces that the manifest needs; the session's others are removed. */
  readonly pieces: readonly string[];
  /** A fence that is lower than the one claimed for the instance is `lease_lost`, as with `SessionStore.append`. */
  readonly fence?: number | undefined;
  /** The lease that `fence` belongs to, as with `SessionStore.append`; default: the lease on the key's instance. */
  readonly lease_on?: { readonly agent: string; readonly instance_id: string } | undefined;
}

/** Keeps the workspaces of sessions, so that the next owner of an instance finds them. */
export interface WorkspaceStore {
  read(key: SessionKey): Promise<StoredWorkspace | undefined>;
  /** A piece of at most 1 MiB; undefined where there is none of that name. */
  readPiece(key: SessionKey, name: string): Promise<Uint8Array | undefined>;
  /** Keeps a piece until a commit does not name it. The name is a digest, so writing it again changes nothing. */
  writePiece(key: SessionKey, name: string, data: Uint8Array): Promise<void>;
  /** Replaces the manifest, whole or not at all. */
  commit(key: SessionKey, commit: WorkspaceCommit): Promise<void>;
  remove(key: SessionKey): Promise<void>;
}
