import { KitError } from "../../base/kit-error.ts";

/** SQLite's result codes (https://sqlite.org/rescode.html) that say something about the file, not the statement. */
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

/** Whether another process holds the file, which passes. */
export function isBusy(error: unknown): boolean {
  const code = error instanceof Error && "errcode" in error ? Number(error.errcode) & 0xff : undefined;
  return code === 5 || code === 6;
}

/** Whether SQLite could not read or write the file, and has said nothing about the values. */
export function isOfFile(error: unknown): boolean {
  return error instanceof Error && "errcode" in error && reasons[Number(error.errcode) & 0xff] !== undefined;
}

/** `unavailable`, with what SQLite said as its cause. What is no fault of the file stays as it is. */
export function toSqliteError(cause: unknown): unknown {
  if (!(cause instanceof Error) || !("errcode" in cause)) return cause;
  const reason = reasons[Number(cause.errcode) & 0xff];
  if (reason === undefined) return cause;
  return new KitError({
    code: "unavailable",
    message: `The session store cannot be used: ${reason}.`,
    hint: "Look at the disk that the session store is on.",
    meta: { retry_after_s: 5 },
    cause,
  });
}
