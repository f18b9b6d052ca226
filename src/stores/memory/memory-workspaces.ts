import type { SessionKey } from "../../protocol/session-entry.ts";
import type { StoredWorkspace, WorkspaceCommit, WorkspaceStore } from "../../protocol/workspace-store.ts";
import { conflict, staleWriter } from "../session-row.ts";

type Lease = Pick<SessionKey, "agent" | "instance_id">;

interface Kept {
  stored: StoredWorkspace | undefined;
  readonly pieces: Map<string, Uint8Array>;
}

/** Workspaces that live as long as the process. */
export class MemoryWorkspaces implements WorkspaceStore {
  readonly #kept = new Map<string, Kept>();
  readonly #fenceOf: (lease: Lease) => number | undefined;

  constructor(fenceOf: (lease: Lease) => number | undefined) {
    this.#fenceOf = fenceOf;
  }

  async read(key: SessionKey): Promise<StoredWorkspace | undefined> {
    return this.#of(key).stored;
  }

  async readPiece(key: SessionKey, name: string): Promise<Uint8Array | undefined> {
    return this.#of(key).pieces.get(name);
  }

  async writePiece(key: SessionKey, name: string, data: Uint8Array): Promise<void> {
    this.#of(key).pieces.set(name, Uint8Array.from(data));
  }

  async commit(key: SessionKey, commit: WorkspaceCommit): Promise<void> {
    const { expected, manifest, pieces, fence, lease_on = key } = commit;
    const kept = this.#of(key);
    if (fence !== undefined && fence < (this.#fenceOf(lease_on) ?? 0)) throw staleWriter();
    if ((kept.stored?.version ?? 0) !== expected) throw conflict();
    kept.stored = { version: expected + 1, manifest };
    const needed = new Set(pieces);
    for (const name of kept.pieces.keys()) if (!needed.has(name)) kept.pieces.delete(name);
  }

  async remove(key: SessionKey): Promise<void> {
    this.removeNow(key);
  }

  removeNow(key: SessionKey): void {
    this.#kept.delete(nameOf(key));
  }

  #of(key: SessionKey): Kept {
    const name = nameOf(key);
    const kept = this.#kept.get(name) ?? { stored: undefined, pieces: new Map() };
    this.#kept.set(name, kept);
    return kept;
  }
}

function nameOf({ agent, instance_id, session }: SessionKey): string {
  return JSON.stringify([agent, instance_id, session]);
}
