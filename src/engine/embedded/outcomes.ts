import { createId } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import { query } from "../../sqlite/statements.ts";
import type { EnginePart } from "../engine-base.ts";
import type { EmbeddedBase } from "./embedded-base.ts";

export interface Outcomes extends EnginePart {
  once(key: string, work: () => Promise<unknown>): Promise<unknown>;
}

/** A process that dies leaves its claim; another one may take the work up after this. */
const claimMs = 30_000;
const renewMs = 10_000;
const pruned = 500;

interface OutcomeRow {
  readonly claimed_until: number;
  readonly value: string | null;
}

/** Runs work once per key, with its outcome on disk. */
export function createOutcomes(base: EmbeddedBase): Outcomes {
  const { database, blobs, clock, time } = base;
  const byKey = query<OutcomeRow>(
    database,
    "SELECT claimed_until, value FROM outcomes WHERE outcome_key = ?",
  );
  const take = query(
    database,
    `INSERT INTO outcomes (outcome_key, claim, claimed_until) VALUES (?, ?, ?)
     ON CONFLICT (outcome_key) DO UPDATE SET claim = excluded.claim, claimed_until = excluded.claimed_until`,
  );
  const renew = query(database, "UPDATE outcomes SET claimed_until = ? WHERE outcome_key = ? AND claim = ?");
  const settle = query(
    database,
    "UPDATE outcomes SET value = ?, done_at = ? WHERE outcome_key = ? AND value IS NULL",
  );
  const giveUp = query(
    database,
    "DELETE FROM outcomes WHERE outcome_key = ? AND claim = ? AND value IS NULL",
  );
  const prune = query(
    database,
    `DELETE FROM outcomes WHERE outcome_key IN (
       SELECT outcome_key FROM outcomes WHERE coalesce(done_at, claimed_until) < ? LIMIT ?)`,
  );
  /** Work that runs in this process: later callers with the same key wait for it. */
  const running = new Map<string, Promise<unknown>>();

  /** The stored outcome, or undefined once this process has claimed the key. */
  function claimOrFind(key: string, claim: string): Promise<string | undefined> {
    return base.commit(() => {
      const now = time.now();
      const row = byKey.get(key);
      if (row !== undefined && row.value !== null) return row.value;
      if (row !== undefined && row.claimed_until > now) throw busy(row.claimed_until - now);
      take.run(key, claim, now + claimMs);
      return undefined;
    });
  }

  async function attempt(key: string, work: () => Promise<unknown>): Promise<unknown> {
    const claim = createId("op");
    const known = await claimOrFind(key, claim);
    if (known !== undefined) return blobs.load(known);
    const renewing = setInterval(() => {
      const write = (): number => renew.run(time.now() + claimMs, key, claim);
      base.commit(write).catch(() => undefined);
    }, renewMs);
    try {
      const stored = await blobs.store(await work());
      await base.commit(() => settle.run(stored, clock.now(), key));
      return blobs.load(stored);
    } catch (error) {
      // Free for the next attempt; a store that refuses this, too, ends the claim with its time.
      await base.commit(() => giveUp.run(key, claim)).catch(() => undefined);
      throw error;
    } finally {
      clearInterval(renewing);
    }
  }

  return {
    once(key, work) {
      const before = running.get(key);
      if (before !== undefined) return before;
      const now = attempt(key, work).finally(() => running.delete(key));
      running.set(key, now);
      return now;
    },
    start: async () => undefined,
    onForeignWrite: () => undefined,
    close: () => undefined,
    async prune(endedBefore) {
      return (await base.commit(() => prune.run(endedBefore, pruned), { fenced: true })) === pruned;
    },
  };
}

function busy(ms: number): KitError {
  return new KitError({
    code: "unavailable",
    message: "This is being done by another process now. Try again later.",
    meta: { retry_after_s: Math.max(1, Math.ceil(ms / 1_000)) },
  });
}
