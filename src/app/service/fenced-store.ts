import { KitError } from "../../base/kit-error.ts";
import { type InstanceKey, instanceName } from "../../protocol/session-name.ts";
import type { WorkspaceStore } from "../../protocol/workspace-store.ts";
import type { SessionStore } from "../../stores/contract.ts";
import { type FullStore, toFullStore } from "../../stores/full-store.ts";
import type { Fences } from "../cluster/owners.ts";
import type { RunLease } from "../runtime/run-workflow.ts";

interface HeldInstance {
  readonly fence: number;
  /** The stores that know the fence. */
  readonly claimedIn: WeakSet<SessionStore>;
}

/**
 * The session store of a node in a cluster: each append carries the fence under which this node took the
 * instance over, so that the store refuses it once another node has taken the instance over.
 */
export class FencedStore implements Fences {
  readonly store: FullStore;
  readonly #inner: FullStore;
  /** The instances that this node has taken over, in the order of their last inputs. */
  readonly #heldInstances = new Map<string, HeldInstance>();
  /** The number of running inputs of each instance. */
  readonly #inputs = new Map<string, number>();
  readonly #maxIdle: number;
  /** The stores of the active runs. Each store holds the entries that an outage has kept it from writing. */
  readonly #runs = new Map<string, { fence: number; stores: Map<SessionStore, SessionStore> }>();
  readonly #guarded = new WeakMap<SessionStore, SessionStore>();

  /** The node remembers at least `maxIdle` instances without a running input. */
  constructor(inner: SessionStore, { maxIdle = 10_000 }: { readonly maxIdle?: number } = {}) {
    const fullStore = toFullStore(inner);
    this.#inner = fullStore;
    this.#maxIdle = maxIdle;
    this.store = {
      ...fullStore,
      append: (request) => fullStore.append({ ...request, fence: this.fenceOf(request.key) }),
      delete: async (key) => {
        await fullStore.delete(key);
        this.#claimAgain(key);
      },
      deleteUntouched: async (key, before) => {
        const isDeleted = await fullStore.deleteUntouched(key, before);
        this.#claimAgain(key);
        return isDeleted;
      },
      ...(fullStore.workspaces && { workspaces: this.#fencedWorkspaces(fullStore.workspaces) }),
    };
  }

  /** Returns the fence under which this node has taken the instance over. */
  fenceOf(instance: InstanceKey): number | undefined {
    return this.#heldInstances.get(instanceName(instance))?.fence;
  }

  writeFence(instance: InstanceKey): number | undefined {
    return this.fenceOf(instance);
  }

  /**
   * Fences an agent's own store as well. Throws `invalid_request` for a store that checks no fences: a node that was frozen could
   * write into a history that another node has continued.
   */
  guard(store: SessionStore): SessionStore {
    const existing = this.#guarded.get(store);
    if (existing !== undefined) return existing;
    if (store.claim === undefined) throw cannotFence();
    const { workspaces: _, ...fullStore } = toFullStore(store);
    /** The first read or write under a fence claims the instance in the store. */
    const claim = async (instance: InstanceKey): Promise<number | undefined> => {
      const instanceClaim = this.#heldInstances.get(instanceName(instance));
      if (instanceClaim === undefined || instanceClaim.claimedIn.has(store)) return instanceClaim?.fence;
      await fullStore.claim(instance, instanceClaim.fence);
      instanceClaim.claimedIn.add(store);
      return instanceClaim.fence;
    };
    const guarded: SessionStore = {
      ...fullStore,
      append: async (request) => await fullStore.append({ ...request, fence: await claim(request.key) }),
      async read(key, after) {
        await claim(key);
        return await fullStore.read(key, after);
      },
    };
    this.#guarded.set(store, guarded);
    return guarded;
  }

  /**
   * Returns the stores of a run's agents: the service's, or one of an agent's own. They refuse their appends once another node has
   * taken the run over. The returned function throws as `guard` does.
   */
  forRun(run: RunLease): (agentStore?: SessionStore) => SessionStore {
    return (agentStore) => {
      const runStores = this.#runs.get(run.id);
      const stores =
        runStores?.fence === run.fence ? runStores.stores : new Map<SessionStore, SessionStore>();
      this.#runs.set(run.id, { fence: run.fence, stores });
      const inner = agentStore ?? this.#inner;
      const store = stores.get(inner) ?? this.#underLease(run, inner);
      stores.set(inner, store);
      return store;
    };
  }

  /** Drops the stores of a run that this node has ended, or left to another node. */
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
    const { workspaces } = inner;
    return {
      ...(inner === this.#inner ? this.store : this.guard(inner)),
      ...(workspaces && {
        workspaces: {
          ...toWorkspaceStore(workspaces),
          async read(key) {
            await claim();
            return await workspaces.read(key);
          },
          async commit(key, commit) {
            await claim();
            await workspaces.commit(key, { ...commit, fence, lease_on });
          },
        },
      }),
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
      ...toWorkspaceStore(inner),
      // The opener of a workspace names the fence that it had then: a later lease of this node is another worker's.
      commit: (key, commit) => inner.commit(key, { ...commit, fence: commit.fence ?? this.fenceOf(key) }),
    };
  }

  /**
   * Takes an instance over under a fence for an input, until `endInput`: other nodes may have written for it under earlier ones.
   */
  async takeOver(instance: InstanceKey, fence: number): Promise<number> {
    const name = instanceName(instance);
    const previous = this.#heldInstances.get(name);
    const instanceClaim =
      previous?.fence === fence ? previous : { fence, claimedIn: new WeakSet<SessionStore>() };
    if (!instanceClaim.claimedIn.has(this.#inner)) {
      await this.#inner.claim(instance, fence);
      instanceClaim.claimedIn.add(this.#inner);
    }
    this.#heldInstances.delete(name);
    this.#heldInstances.set(name, instanceClaim);
    this.#inputs.set(name, (this.#inputs.get(name) ?? 0) + 1);
    return fence;
  }

  /** Called when an input that took its instance over has ended. */
  endInput(instance: InstanceKey): void {
    const name = instanceName(instance);
    const inputCount = (this.#inputs.get(name) ?? 1) - 1;
    if (inputCount > 0) this.#inputs.set(name, inputCount);
    else this.#inputs.delete(name);
    if (this.#heldInstances.size <= this.#maxIdle + this.#inputs.size) return;
    // One that is forgotten is taken over again with its next input, as an instance that is new to this node.
    for (const idle of this.#heldInstances.keys()) {
      if (this.#inputs.has(idle)) continue;
      this.#heldInstances.delete(idle);
      return;
    }
  }

  /** A store forgets a claim with the last session of the instance: the next input claims again. */
  #claimAgain(instance: InstanceKey): void {
    this.#heldInstances.get(instanceName(instance))?.claimedIn.delete(this.#inner);
  }
}

function toWorkspaceStore(inner: WorkspaceStore): WorkspaceStore {
  return {
    read: (key) => inner.read(key),
    readPiece: (...args) => inner.readPiece(...args),
    writePiece: (...args) => inner.writePiece(...args),
    commit: (...args) => inner.commit(...args),
    remove: (key) => inner.remove(key),
  };
}

function cannotFence(): KitError {
  return new KitError({
    code: "invalid_request",
    message: "The agent has a store of its own that checks no fences, and several machines share the work.",
    hint: "Leave the agent's store out, name a Postgres store, or give the store `claim` and have it check `fence` in `append`.",
  });
}
