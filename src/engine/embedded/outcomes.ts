import { query } from "../../sqlite/statements.ts";
import { beingDone, type OutcomeStore } from "../shared/outcomes.ts";
import type { EmbeddedBase, EnginePart } from "./embedded-base.ts";

const pruned = 500;

interface OutcomeRow {
  readonly claimed_until: number;
  readonly value: string | null;
}

/** The outcomes of `Engine.once` in the engine's database. */
export function createOutcomeRows(base: EmbeddedBase): {
  readonly store: OutcomeStore;
  readonly part: EnginePart;
} {
  const { database, clock, time } = base;
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
  const store: OutcomeStore = {
    claimOrFind: (key, claim, until) =>
      base.commit(() => {
        const now = time.now();
        const row = byKey.get(key);
        if (row !== undefined && row.value !== null) return row.value;
        if (row !== undefined && row.claimed_until > now) throw beingDone(row.claimed_until - now);
        take.run(key, claim, until);
        return undefined;
      }),
    async renew(key, claim, until) {
      await base.commit(() => renew.run(until, key, claim));
    },
    async settle(key, value) {
      await base.commit(() => settle.run(value, clock.now(), key));
    },
    async giveUp(key, claim) {
      await base.commit(() => giveUp.run(key, claim));
    },
  };
  const part: EnginePart = {
    start: async () => undefined,
    onForeignWrite: () => undefined,
    close: () => undefined,
    async prune(endedBefore) {
      return (await base.commit(() => prune.run(endedBefore, pruned), { fenced: true })) === pruned;
    },
  };
  return { store, part };
}
