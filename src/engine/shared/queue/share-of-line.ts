import { KitError } from "../../../base/kit-error.ts";
import type { EngineLimits } from "../engine-base.ts";
import type { LineScope } from "./job.ts";
import type { JobQueue } from "./job-queue.ts";
import { kindOf } from "./owners.ts";

/** How many wait, of what may wait together. */
export interface Load {
  readonly all: number;
  readonly ofOwner: number;
}

/**
 * Throws when there is no room in the line for one more of an owner's: `unavailable` when the line is full,
 * `too_many_requests` when the owner has its share of it. Without a limit of its own, an owner's share ends where it has
 * as many as there are places left: one has half of the line at most, two have a third each, and so on, so that
 * there is always room for whoever comes next.
 */
export function checkShare(
  load: Load,
  owner: string,
  { limits, queue, what }: { readonly limits: EngineLimits; readonly queue: JobQueue; readonly what: string },
): void {
  const { waiting, waitingPerOwner } = limits;
  if (load.all >= waiting) {
    throw new KitError({
      code: "unavailable",
      message: `Too many ${what} are waiting. Try again later.`,
      meta: { scope: "engine", ...retryAfter(queue, {}) },
    });
  }
  if (load.ofOwner < Math.max(1, waitingPerOwner ?? waiting - load.all)) return;
  const kind = kindOf(owner);
  throw new KitError({
    code: "too_many_requests",
    message: `${load.ofOwner} ${what} of ${kind === "principal" ? "yours" : `this ${kind}`} are waiting, which is the share of one ${kind} in the line.`,
    hint: "Send less at a time. engine.max_waiting_per_principal sets the share, engine.max_waiting the length of the line.",
    meta: { scope: kind, waiting: load.ofOwner, ...retryAfter(queue, { owner }) },
  });
}

/** Where nothing was measured, because another process does the work. */
const usualS = 5;

/** When to come again, in whole seconds, as an error's `meta`. */
export function retryAfter(queue: JobQueue, scope: LineScope): { readonly retry_after_s: number } {
  const ms = queue.retryDelay(scope);
  return { retry_after_s: ms === undefined ? usualS : Math.max(1, Math.ceil(ms / 1_000)) };
}
