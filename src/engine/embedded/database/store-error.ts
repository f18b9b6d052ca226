import { KitError } from "../../../base/kit-error.ts";

/** SQLite's result codes (https://sqlite.org/rescode.html) that say something about the store, not the statement. */
const reasons: Readonly<Record<number, string>> = {
  5: "another process holds it",
  6: "another process holds it",
  8: "it is read-only",
  10: "reading or writing failed",
  11: "it is damaged",
  13: "the disk is full",
  14: "it cannot be opened",
  26: "it is damaged",
};

/** The primary result code; undefined for what SQLite did not say. */
function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !("errcode" in error)) return undefined;
  return Number(error.errcode) & 0xff;
}

export function isBusy(error: unknown): boolean {
  const code = resultCode(error);
  return code === 5 || code === 6;
}

/** Whether the store is at fault, so that the whole transaction is lost. */
export function isStoreError(error: unknown): boolean {
  return reasons[resultCode(error) ?? -1] !== undefined;
}

/** `unavailable`, with what SQLite said as its cause. What is no fault of the store stays as it is. */
export function toStoreError(cause: unknown): unknown {
  const reason = reasons[resultCode(cause) ?? -1];
  if (reason === undefined) return cause;
  return new KitError({
    code: "unavailable",
    message: `The engine's store cannot be used: ${reason}.`,
    hint: "Look at the disk of the engine's folder. The engine goes on by itself once it can.",
    meta: { retry_after_s: 5 },
    cause,
  });
}
