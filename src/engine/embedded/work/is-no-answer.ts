import { isRetryableCode } from "../../../protocol/error-code.ts";
import type { EventError } from "../../../protocol/event.ts";
import { parseStored } from "../database/stored-json.ts";

/**
 * Whether ended work is no final answer to its idempotency key: it was cancelled, or failed with a retryable code.
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
