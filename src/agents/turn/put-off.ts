import { KitError } from "../../base/kit-error.ts";

/** Thrown by a call that is to go on when its operation does: it has no result yet. The cause is why. */
export class PutOff extends Error {
  override readonly name = "PutOff";
}

/**
 * Whether an abort means that the same operation is asked for again, by another process or at the next
 * start: what can be gone on with then is left as a crash would leave it.
 */
export function isPutOff({ aborted, reason }: AbortSignal): boolean {
  if (!aborted || !(reason instanceof KitError)) return false;
  return reason.code === "lease_lost" || reason.meta?.will_resume === true;
}
