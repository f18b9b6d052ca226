import { createId } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import type { EngineBase } from "./engine-base.ts";

/** The outcomes of `Engine.once`, by key. */
export interface OutcomeStore {
  /**
   * Claims a key until a time (ms of `EngineBase.time`). Returns the stored outcome if the key has one. Throws
   * `unavailable` (`beingDone`) while another claim is valid.
   */
  claimOrFind(key: string, claim: string, until: number): Promise<string | undefined>;
  renew(key: string, claim: string, until: number): Promise<void>;
  settle(key: string, value: string): Promise<void>;
  /** Ends a claim without an outcome. */
  giveUp(key: string, claim: string): Promise<void>;
}

/** A process that dies leaves its claim behind; another process can claim the key after this time. */
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
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const attempt = this.#attempt(key, work).finally(() => this.#running.delete(key));
    this.#running.set(key, attempt);
    return attempt;
  }

  async #attempt(key: string, work: () => Promise<unknown>): Promise<unknown> {
    const { blobs, time } = this.#base;
    const claim = createId("op");
    const earlier = await this.#store.claimOrFind(key, claim, time.now() + claimMs);
    if (earlier !== undefined) return blobs.load(earlier);
    const renewing = setInterval(() => {
      this.#store.renew(key, claim, time.now() + claimMs).catch(() => undefined);
    }, renewMs);
    try {
      const stored = await blobs.store(await work());
      await this.#store.settle(key, stored);
      return blobs.load(stored);
    } catch (error) {
      // Frees the key for the next attempt. If the store refuses this write too, the claim expires.
      await this.#store.giveUp(key, claim).catch(() => undefined);
      throw error;
    } finally {
      clearInterval(renewing);
    }
  }
}

/** The error for a key that another process has claimed for `ms` more. */
export function beingDone(ms: number): KitError {
  return new KitError({
    code: "unavailable",
    message: "Another process is doing this work now. Try again later.",
    meta: { retry_after_s: Math.max(1, Math.ceil(ms / 1_000)) },
  });
}
