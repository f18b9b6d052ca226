import { randomUUID } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import type { Clock } from "../../../base/clock.ts";
import { KitError } from "../../../base/kit-error.ts";
import type { Lease } from "../engine-base.ts";
import { isGone, processBirth } from "./process-birth.ts";

export interface LeaseHolder extends Lease {
  readonly isHeld: boolean;
  /** Whether the lease is free, or its holder dead or late, as it seems without a transaction. */
  isFree(): boolean;
  /** In a transaction: takes the lease when it is free, or its holder is dead or late. True when it is ours now. */
  acquire(): boolean;
  /** In a transaction: says that we live. False when the lease is another's. */
  renew(): boolean;
  /** In a transaction: throws `lease_lost` unless the lease is ours, of the given fence where there is one. */
  check(fence?: number): void;
  /** After the transaction: what `acquire` gained counts from now on. */
  begin(): void;
  /** Tells those who work that the lease is gone, or may be. */
  lose(): void;
  /** In a transaction: gives the lease back, so that another process need not wait. */
  release(): void;
  /** Whether our last sign of life is so old that another may have taken over. */
  isLate(): boolean;
}

export interface LeaseOptions {
  readonly clock: Clock;
  /** How long a holder may be silent before another takes over. */
  readonly ttlMs: number;
}

/** The lease of an engine's folder: a row that its owner has to renew, with a fence that only rises. */
export function createLease(database: DatabaseSync, options: LeaseOptions): LeaseHolder {
  const { clock, ttlMs } = options;
  const owner = randomUUID();
  const birth = processBirth(process.pid) ?? "";
  const read = database.prepare("SELECT fence, owner, pid, birth, expires_at FROM lease");
  const take = database.prepare(
    "UPDATE lease SET fence = fence + 1, owner = ?, pid = ?, birth = ?, expires_at = ? RETURNING fence",
  );
  const extend = database.prepare("UPDATE lease SET expires_at = ? WHERE owner = ? AND fence = ?");
  const free = database.prepare(
    "UPDATE lease SET owner = NULL, pid = NULL, birth = NULL, expires_at = 0 WHERE owner = ? AND fence = ?",
  );

  let fence = 0;
  let taken = 0;
  let expiresAt = 0;
  let tenure = new AbortController();
  tenure.abort(lost());

  function isFree(): boolean {
    const row = read.get();
    // What is still ours was lost by mistake, or for being late: nobody else has wanted it.
    if (row === undefined || row["owner"] === null || row["owner"] === owner) return true;
    if (Number(row["expires_at"]) <= clock.now()) return true;
    return isGone(Number(row["pid"]), String(row["birth"]));
  }

  return {
    get fence() {
      return fence;
    },
    get signal() {
      return tenure.signal;
    },
    get isHeld() {
      return !tenure.signal.aborted;
    },
    isFree,
    acquire() {
      if (!isFree()) return false;
      expiresAt = clock.now() + ttlMs;
      taken = Number(take.get(owner, process.pid, birth, expiresAt)?.["fence"]);
      return true;
    },
    begin() {
      fence = taken;
      tenure = new AbortController();
    },
    renew() {
      const until = clock.now() + ttlMs;
      if (extend.run(until, owner, fence).changes === 0) return false;
      expiresAt = until;
      return true;
    },
    check(wanted = fence) {
      const row = read.get();
      if (tenure.signal.aborted || row?.["owner"] !== owner || row["fence"] !== wanted) throw lost();
    },
    lose() {
      tenure.abort(lost());
    },
    release() {
      free.run(owner, fence);
    },
    isLate: () => clock.now() >= expiresAt,
  };
}

export function isLost(error: unknown): boolean {
  return error instanceof KitError && error.code === "lease_lost";
}

function lost(): KitError {
  return new KitError({
    code: "lease_lost",
    message: "Another process does the work of this engine now.",
    meta: { retry_after_s: 1 },
  });
}
