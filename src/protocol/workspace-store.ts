import type { SessionKey } from "./session-entry.ts";

/** The stored files of a session: a manifest; the contents of the files are separate pieces. */
export interface StoredWorkspace {
  /** From 1; rises with each change. */
  readonly version: number;
  readonly manifest: string;
}

export interface WorkspaceCommit {
  /** The version that the writer last read; 0 for none. Throws `conflict` if the store has another version. */
  readonly expected: number;
  readonly manifest: string;
  /** The pieces that the manifest needs; the session's other pieces are removed. */
  readonly pieces: readonly string[];
  /** Throws `lease_lost` if it is lower than the fence claimed for the instance, as `SessionStore.append` does. */
  readonly fence?: number | undefined;
  /** The lease that `fence` belongs to, as with `SessionStore.append`; default: the lease on the key's instance. */
  readonly lease_on?: { readonly agent: string; readonly instance_id: string } | undefined;
}

/** Keeps the workspaces of sessions, so that the next owner of an instance finds them. */
export interface WorkspaceStore {
  read(key: SessionKey): Promise<StoredWorkspace | undefined>;
  /** Returns a piece of at most 1 MiB; undefined if there is none of that name. */
  readPiece(key: SessionKey, name: string): Promise<Uint8Array | undefined>;
  /** Stores a piece until a commit leaves it out. The name is a digest, so writing it again changes nothing. */
  writePiece(key: SessionKey, name: string, data: Uint8Array): Promise<void>;
  /** Replaces the manifest atomically. */
  commit(key: SessionKey, commit: WorkspaceCommit): Promise<void>;
  remove(key: SessionKey): Promise<void>;
}
