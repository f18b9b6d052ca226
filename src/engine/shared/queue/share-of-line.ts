import { KitError } from "../../../base/kit-error.ts";
import type { EngineLimits } from "../engine-base.ts";
import type { LineScope } from "./job.ts";
import type { JobQueue } from "./job-queue.ts";
import { kindOf } from "./owners.ts";

/** The number of waiting inputs or runs: of all owners, and of one owner. */
export interface Load {
  readonly all: number;
  readonly ofOwner: number;
}

/**
 * Throws if the line has no room for one more input or run of an owner: `unavailable` if the line is full,
 * `too_many_requests` if the owner has used up its share. Without `waitingPerOwner`, an owner can use as many places as it
 * leaves free: one owner gets at most half of the line, two get a third each, and so on, so that there is always room for
 * another owner.
 */
export function checkShare(
  load: Load,
  owner: string,
  {
    limits,
    queue,
    jobs: what,
  }: { readonly limits: EngineLimits; readonly queue: JobQueue; readonly jobs: string },
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
    message: `${kind === "principal" ? "You have" : `This ${kind} has`} ${load.ofOwner} waiting ${what}, the most that one ${kind} may have.`,
    hint: "Send fewer requests at a time. engine.max_waiting_per_principal sets the share, engine.max_waiting the length of the line.",
    meta: { scope: kind, waiting: load.ofOwner, ...retryAfter(queue, { owner }) },
  });
}

/** The delay while another process does the work, so that this process has measured nothing. */
const usualS = 5;

/** The delay before a retry, in whole seconds, as an error's `meta`. */
export function retryAfter(queue: JobQueue, scope: LineScope): { readonly retry_after_s: number } {
  const ms = queue.retryDelay(scope);
  return { retry_after_s: ms === undefined ? usualS : Math.max(1, Math.ceil(ms / 1_000)) };
}
