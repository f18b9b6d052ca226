import { KitError } from "../../base/kit-error.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import type { WorkspaceStore } from "../../protocol/workspace-store.ts";
import type { SessionStore } from "../../stores/contract.ts";
import type { RunLease, RunStores } from "../runtime/run-workflow.ts";

/** An agent's instance. */
export interface OwnedInstance {
  readonly agent: string;
  readonly instance_id: string;
}

/**
 * The session store of a node that shares its work with others: each append carries the fence under which this node took the
 * instance over, so that the store refuses it once another node has done so.
 */
export class FencedStore implements RunStores {
  readonly store: SessionStore;
  readonly #inner: SessionStore;
  readonly #fences = new Map<string, number>();
  /** Instances whose fence the store knows. */
  readonly #claimed = new Set<string>();
  /** Stores of the runs at work. Each outlives an outage: what it could not write yet is kept with it. */
  readonly #runs = new Map<string, { fence: number; stores: Map<SessionStore, SessionStore> }>();
  readonly #guarded = new WeakMap<SessionStore, SessionStore>();

  constructor(inner: SessionStore) {
    this.#inner = inner;
    this.store = {
      append: (request) => inner.append({ ...request, fence: this.#fences.get(nameOf(request.key)) }),
      read: (...given) => inner.read(...given),
      info: (...given) => inner.info(...given),
      list: (...given) => inner.list(...given),
      delete: async (key) => {
        await inner.delete(key);
        // The store may have forgotten the claim with the last session: the next input claims again.
        this.#claimed.delete(nameOf(key));
      },
      ...(inner.listAll && { listAll: inner.listAll.bind(inner) }),
      ...(inner.deleteUntouched && {
        deleteUntouched: async (key: SessionKey, before: number) => {
          this.#claimed.delete(nameOf(key));
          return (await inner.deleteUntouched?.(key, before)) ?? false;
        },
      }),
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

  /**
   * The store of an agent's own, fenced as well. Throws `invalid_request` for one that checks no fences: a node that was frozen could
   * write into a history that another one has gone on with.
   */
  guard(own: SessionStore): SessionStore {
    const known = this.#guarded.get(own);
    if (known !== undefined) return known;
    if (own.claim === undefined) throw cannotFence();
    const claimed = new Map<string, number>();
    /** The first to read or write under a fence says so. */
    const claim = async (instance: OwnedInstance): Promise<number | undefined> => {
      const name = nameOf(instance);
      const fence = this.#fences.get(name);
      if (fence === undefined || claimed.get(name) === fence) return fence;
      await own.claim?.(instance, fence);
      claimed.set(name, fence);
      return fence;
    };
    const guarded: SessionStore = {
      append: async (request) => await own.append({ ...request, fence: await claim(request.key) }),
      async read(key, after) {
        await claim(key);
        return await own.read(key, after);
      },
      info: (...given) => own.info(...given),
      list: (...given) => own.list(...given),
      delete: (...given) => own.delete(...given),
      ...(own.listAll && { listAll: own.listAll.bind(own) }),
      ...(own.deleteUntouched && { deleteUntouched: own.deleteUntouched.bind(own) }),
      ...(own.keepText && { keepText: own.keepText.bind(own) }),
      ...(own.readText && { readText: own.readText.bind(own) }),
      ...(own.pruneTexts && { pruneTexts: own.pruneTexts.bind(own) }),
      ...(own.problem && { problem: own.problem.bind(own) }),
      close: () => own.close(),
    };
    this.#guarded.set(own, guarded);
    return guarded;
  }

  /**
   * The store of a run's agents: the service's, or one of an agent's own. It refuses their appends once another node has taken the
   * run over. Throws as `guard` does.
   */
  forRun(run: RunLease, own?: SessionStore): SessionStore {
    const held = this.#runs.get(run.id);
    const stores = held?.fence === run.fence ? held.stores : new Map<SessionStore, SessionStore>();
    this.#runs.set(run.id, { fence: run.fence, stores });
    const inner = own ?? this.#inner;
    const store = stores.get(inner) ?? this.#underLease(run, inner);
    stores.set(inner, store);
    return store;
  }

  /** Lets go of the stores of a run that this node has ended, or left to another one. */
  forgetRun({ id, fence }: RunLease): void {
    if (this.#runs.get(id)?.fence === fence) this.#runs.delete(id);
  }

  #underLease({ id, fence }: RunLease, inner: SessionStore): SessionStore {
    // The fences of an instance and of a run rise apart from each other, and both may write into one session.
    const lease_on = { agent: "", instance_id: id };
    let claimed: Promise<void> | undefined;
    const claim = async (): Promise<void> => {
      claimed ??= (async () => await inner.claim?.(lease_on, fence))();
      try {
        await claimed;
      } catch (error) {
        claimed = undefined;
        throw error;
      }
    };
    return {
      ...(inner === this.#inner ? this.store : this.guard(inner)),
      async append(request) {
        await claim();
        await inner.append({ ...request, fence, lease_on });
      },
      async read(key, after) {
        await claim();
        return await inner.read(key, after);
      },
    };
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
    const isNew = this.#fences.get(name) !== fence;
    if (!isNew && this.#claimed.has(name)) return false;
    await this.#inner.claim?.(instance, fence);
    this.#fences.set(name, fence);
    this.#claimed.add(name);
    return isNew;
  }
}

function nameOf({ agent, instance_id }: OwnedInstance): string {
  return JSON.stringify([agent, instance_id]);
}

function cannotFence(): KitError {
  return new KitError({
    code: "invalid_request",
    message: "The agent has a store of its own that checks no fences, and several machines share the work.",
    hint: "Leave the agent's store out, name a Postgres store, or give the store `claim` and have it check `fence` in `append`.",
  });
}
