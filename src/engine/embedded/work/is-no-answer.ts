import { isRetryableCode } from "../../../protocol/error-code.ts";
import type { EventError } from "../../../protocol/event.ts";
import { parseStored } from "../database/stored-json.ts";

/**
 * Whether what has become of work is nothing that its idempotency key is answered with for good: it was cancelled, or
 * failed with a code that says the same call can succeed later.
 */
export function isNoAnswer({
  status,
  error,
}: {
  readonly status: string;
  readonly error: string | null;
}): boolean {
  if (status === "cancelled") return true;
  if (status !== "failed" || error === null) return false;
  const { type } = parseStored(error) as EventError;
  return isRetryableCode(type);
}
