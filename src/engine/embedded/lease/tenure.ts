import type { EngineHandlers } from "../../contract.ts";
import type { EnginePart } from "../embedded-base.ts";
import type { EngineCore } from "../engine-core.ts";

const pruneEveryMs = 60_000;
const sweepEveryMs = 3_600_000;

export interface Tenure {
  /** Tries for the lease once; whoever does not get it stands by, and tries on. */
  start(handlers: EngineHandlers): Promise<void>;
  /** Ends all that goes on in the background, and gives the lease back. */
  end(): Promise<void>;
}

/**
 * Gains the lease and renews it, starts the parts while it is held, and tells them when another process has written.
 */
export function createTenure(core: EngineCore, parts: readonly EnginePart[]): Tenure {
  const { base, lease, limits } = core;
  const { clock, queue } = base;
  const over = new AbortController();
  const version = base.database.prepare("PRAGMA data_version");
  let seen = Number(version.get()?.data_version);

  async function tryFor(handlers: EngineHandlers): Promise<void> {
    if (!lease.isFree()) return;
    try {
      const gained = await base.commit(() => {
        if (!lease.acquire()) return false;
        base.time.resume();
        base.time.mark();
        return true;
      });
      if (!gained || over.signal.aborted) return;
      lease.begin();
      lease.signal.addEventListener("abort", () => queue.close({ clear: true }), { once: true });
      for (const part of parts) await part.start(handlers);
    } catch (error) {
      lease.lose();
      throw error;
    }
    if (lease.isHeld && !over.signal.aborted) queue.open();
  }

  /** Well before the lease runs out, and again: a locked store must not cost it. */
  async function beat(handlers: EngineHandlers): Promise<void> {
    if (!lease.isHeld) return await tryFor(handlers);
    // A process that wakes after it lost the lease notices here. A late heartbeat keeps a lease that no other process took.
    if (!lease.isOurs() || !(await base.commit(() => lease.renew()))) return lease.lose();
    const jump = base.time.jump();
    await base.commit(() => noteTime(jump), { fenced: true });
    if (jump === 0) return;
    try {
      handlers.onClockSet?.(jump);
    } catch {
      // A listener that throws must not stop the work.
    }
    for (const part of parts) await part.clockSet?.();
  }

  /** In a transaction. A clock that was set forward may be set back: what seems old by it now is kept for as long. */
  function noteTime(jump: number): void {
    base.time.mark();
    const { retentionMs, longestRetentionMs = retentionMs } = limits;
    if (jump > 0) base.time.keepUntil(base.time.now() + Math.min(jump, longestRetentionMs));
  }

  async function noticeWrites(): Promise<void> {
    const now = Number(version.get()?.data_version);
    if (now === seen) return;
    seen = now;
    for (const part of parts) part.onForeignWrite();
  }

  async function prune(): Promise<void> {
    if (!lease.isHeld || !base.time.mayRemove()) return;
    for (const part of parts) {
      while (lease.isHeld && (await part.prune?.(clock.now() - limits.retentionMs)) === true);
    }
  }

  async function sweep(): Promise<void> {
    if (lease.isHeld) await core.blobs.sweep(clock.now());
  }

  const background = core.isShared ? [every(() => limits.pollMs, noticeWrites)] : [];

  /** Again and again. What fails is tried again at its next time: a full disk is not a reason to stop. */
  async function every(ms: () => number, task: () => Promise<void>): Promise<void> {
    while (!over.signal.aborted) {
      await clock.sleep(ms(), over.signal).catch(() => undefined);
      if (!over.signal.aborted) await task().catch(() => undefined);
    }
  }

  return {
    async start(handlers) {
      await tryFor(handlers);
      // A standby asks often: a dead holder is replaced at once.
      const pause = (): number => (lease.isHeld ? limits.leaseMs / 5 : Math.min(limits.leaseMs / 5, 100));
      background.push(
        every(pause, () => beat(handlers)),
        every(() => pruneEveryMs, prune),
        every(() => sweepEveryMs, sweep),
      );
    },
    async end() {
      over.abort();
      await Promise.all(background);
      if (lease.isHeld) await base.commit(() => lease.release()).catch(() => undefined);
      lease.lose();
    },
  };
}
