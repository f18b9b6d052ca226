import { linkSignals } from "../../../base/abort.ts";
import { createId } from "../../../base/id.ts";
import type { LinePlace, WaitOptions, WorkContext } from "../../contract.ts";
import { closing, type EngineBase } from "../engine-base.ts";
import type { Job, LineScope } from "../queue/job.ts";
import { lineOf, ownerOfInput } from "../queue/owners.ts";

/** Work of callers that wait for the answer: in line with the stored inputs of its session, but not stored itself. */
export class AttachedCalls {
  readonly #base: EngineBase;
  readonly #ofLine = new Map<string, number>();
  readonly #ofOwner = new Map<string, number>();
  /** The sessions of the calls that wait or run. */
  readonly #lines = new Set<LinePlace>();
  #total = 0;

  constructor(base: EngineBase) {
    this.#base = base;
  }

  /** The number of waiting calls: in a session, of an owner, or in total. */
  waiting({ line, owner }: LineScope = {}): number {
    if (line !== undefined) return this.#ofLine.get(line) ?? 0;
    return owner === undefined ? this.#total : (this.#ofOwner.get(owner) ?? 0);
  }

  /** The sessions of calls that wait or run; a session is listed once per call. */
  get lines(): Iterable<LinePlace> {
    return this.#lines;
  }

  /** Runs `work` when its turn comes, once; see `Engine.inLine`. */
  async run<Value>(
    at: LinePlace,
    work: (context: WorkContext) => Promise<Value>,
    signal?: AbortSignal,
  ): Promise<Value> {
    signal?.throwIfAborted();
    const { queue } = this.#base;
    const position = { id: createId("call"), line: lineOf(at), owner: ownerOfInput(at) };
    const { promise, resolve, reject } = Promise.withResolvers<Value>();
    const leaveCount = (): void => {
      this.#count(position, -1);
      signal?.removeEventListener("abort", leave);
    };
    const refuse = (reason: unknown): void => {
      leaveCount();
      reject(reason);
    };
    const leave = (): void => {
      if (queue.leave(position)) refuse(signal?.reason);
    };
    const begin: Job["begin"] = async (releaseSlot) => {
      leaveCount();
      await this.#perform(at, work, { id: position.id, releaseSlot, signal }).then(resolve, reject);
      return { ended: true };
    };
    // A copy, because several calls can pass the same object.
    const session = { ...at };
    this.#lines.add(session);
    try {
      this.#count(position, 1);
      signal?.addEventListener("abort", leave, { once: true });
      queue.join({ ...position, begin, forget: () => refuse(closing()) });
      return await promise;
    } finally {
      this.#lines.delete(session);
    }
  }

  async #perform<Value>(
    at: LinePlace,
    work: (context: WorkContext) => Promise<Value>,
    { id, releaseSlot, signal }: Pick<WorkContext, "id" | "releaseSlot"> & Pick<WaitOptions, "signal">,
  ): Promise<Value> {
    const { fence, signal: leaseSignal } = this.#base.leaseOf(at);
    const stop = linkSignals([leaseSignal, this.#base.stopping], signal);
    try {
      const checkFence = (): Promise<void> => this.#base.checkLease(at, fence);
      return await work({ id, attempt: 1, fence, signal: stop.signal, releaseSlot, checkFence });
    } finally {
      stop.unlink();
    }
  }

  #count({ line, owner }: Pick<Job, "line" | "owner">, change: 1 | -1): void {
    this.#total += change;
    for (const [counts, name] of [
      [this.#ofLine, line],
      [this.#ofOwner, owner],
    ] as const) {
      const now = (counts.get(name) ?? 0) + change;
      if (now === 0) counts.delete(name);
      else counts.set(name, now);
    }
  }
}
