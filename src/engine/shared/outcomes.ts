import { createId } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import type { EngineBase } from "./engine-base.ts";

/** The outcomes of `Engine.once`, by key. */
export interface OutcomeStore {
  /**
   * Claims a key until a time (ms of `EngineBase.time`); gives the stored outcome where there is one. Throws `unavailable`
   * (`beingDone`) while another claim stands.
   */
  claimOrFind(key: string, claim: string, until: number): Promise<string | undefined>;
  renew(key: string, claim: string, until: number): Promise<void>;
  settle(key: string, value: string): Promise<void>;
  /** Ends a claim without an outcome. */
  giveUp(key: string, claim: string): Promise<void>;
}

/** A process that dies leaves its claim; another one may take the work up after this. */
const claimMs = 30_000;
const renewMs = 10_000;

/** Runs work once per key, with its outcome on disk. */
export class Outcomes {
  readonly #base: EngineBase;
  readonly #store: OutcomeStore;
  /** Work that runs in this process: later callers with the same key wait for it. */
  readonly #running = new Map<string, Promise<unknown>>();

  constructor(base: EngineBase, store: OutcomeStore) {
    this.#base = base;
    this.#store = store;
  }

  /** `Engine.once`. */
  once(key: string, work: () => Promise<unknown>): Promise<unknown> {
    const before = this.#running.get(key);
    if (before !== undefined) return before;
    const now = this.#attempt(key, work).finally(() => this.#running.delete(key));
    this.#running.set(key, now);
    return now;
  }

  async #attempt(key: string, work: () => Promise<unknown>): Promise<unknown> {
    const { blobs, time } = this.#base;
    const claim = createId("op");
    const known = await this.#store.claimOrFind(key, claim, time.now() + claimMs);
    if (known !== undefined) return blobs.load(known);
    const renewing = setInterval(() => {
      this.#store.renew(key, claim, time.now() + claimMs).catch(() => undefined);
    }, renewMs);
    try {
      const stored = await blobs.store(await work());
      await this.#store.settle(key, stored);
      return blobs.load(stored);
    } catch (error) {
      // Free for the next attempt; a store that refuses this, too, ends the claim with its time.
      await this.#store.giveUp(key, claim).catch(() => undefined);
      throw error;
    } finally {
      clearInterval(renewing);
    }
  }
}

/** The error of a key that another process has claimed for so many more ms. */
export function beingDone(ms: number): KitError {
  return new KitError({
    code: "unavailable",
    message: "Another process is doing this work now. Try again later.",
    meta: { retry_after_s: Math.max(1, Math.ceil(ms / 1_000)) },
  });
}
