import type { WorkspaceStore } from "../../protocol/workspace-store.ts";
import type { SessionStore } from "../../stores/contract.ts";

/** An agent's instance. */
export interface OwnedInstance {
  readonly agent: string;
  readonly instance_id: string;
}

/**
 * The session store of a node that shares its work with others: each append carries the fence under which this node took the
 * instance over, so that the store refuses it once another node has done so.
 */
export class FencedStore {
  readonly store: SessionStore;
  readonly #inner: SessionStore;
  readonly #fences = new Map<string, number>();

  constructor(inner: SessionStore) {
    this.#inner = inner;
    this.store = {
      append: (request) => inner.append({ ...request, fence: this.#fences.get(nameOf(request.key)) }),
      read: (...given) => inner.read(...given),
      info: (...given) => inner.info(...given),
      list: (...given) => inner.list(...given),
      delete: (...given) => inner.delete(...given),
      ...(inner.listAll && { listAll: inner.listAll.bind(inner) }),
      ...(inner.deleteUntouched && { deleteUntouched: inner.deleteUntouched.bind(inner) }),
      ...(inner.keepText && { keepText: inner.keepText.bind(inner) }),
      ...(inner.readText && { readText: inner.readText.bind(inner) }),
      ...(inner.pruneTexts && { pruneTexts: inner.pruneTexts.bind(inner) }),
      ...(inner.workspaces && { workspaces: this.#fencedWorkspaces(inner.workspaces) }),
      ...(inner.problem && { problem: inner.problem.bind(inner) }),
      close: () => inner.close(),
    };
  }

  /** The fence under which this node has taken an instance over. */
  fenceOf(instance: OwnedInstance): number | undefined {
    return this.#fences.get(nameOf(instance));
  }

  #fencedWorkspaces(inner: WorkspaceStore): WorkspaceStore {
    return {
      read: (key) => inner.read(key),
      readPiece: (...given) => inner.readPiece(...given),
      writePiece: (...given) => inner.writePiece(...given),
      commit: (key, commit) => inner.commit(key, { ...commit, fence: this.#fences.get(nameOf(key)) }),
      remove: (key) => inner.remove(key),
    };
  }

  /** Takes an instance over under a fence. Gives whether that is new to this node: others may have written meanwhile. */
  async takeOver(instance: OwnedInstance, fence: number): Promise<boolean> {
    const name = nameOf(instance);
    if (this.#fences.get(name) === fence) return false;
    await this.#inner.claim?.(instance, fence);
    this.#fences.set(name, fence);
    return true;
  }
}

function nameOf({ agent, instance_id }: OwnedInstance): string {
  return JSON.stringify([agent, instance_id]);
}
