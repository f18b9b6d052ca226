import { KitError } from "../../../base/kit-error.ts";

/** The error of a name that a journal cannot hold as it is; undefined for one that it can. */
export function checkName(name: unknown): KitError | undefined {
  const isName = typeof name === "string" && name !== "" && name.length <= 256;
  // A lone half of a surrogate pair, or a NUL, would come back from the database as something else.
  if (isName && name.isWellFormed() && !name.includes("\0")) return undefined;
  return invalid("The name of a step, a signal or an agent is a text of 1 to 256 characters.");
}

export function invalid(message: string): KitError {
  return new KitError({ code: "invalid_request", message });
}
