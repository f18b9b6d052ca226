import { KitError } from "../../base/kit-error.ts";

const idPattern = /^[\w.:-]{1,128}$/;

/** What a caller's id makes of a request for an operation. Throws `invalid_request` for one that is none. */
export function resumable(
  operationId: string | undefined,
  resumes = true,
): { readonly id?: string; readonly resumes?: boolean } {
  if (operationId === undefined) return {};
  if (typeof operationId === "string" && idPattern.test(operationId)) return { id: operationId, resumes };
  throw new KitError({
    code: "invalid_request",
    message: "An operation's id has 1 to 128 letters, digits, and the characters _ - . and :",
  });
}
