import { KitError } from "../../base/kit-error.ts";

/** Deeper than any record, and far below the limit of the stack. */
const maxDepth = 200;

/**
 * Throws for a value that JSON would change: a replay must return the same value as the first run. Properties that are
 * `undefined` are ignored, as JSON does. `subject` begins the message: `The result of step "charge"`. Use
 * `internal_error` for values that a workflow's own code returns: its caller has made no mistake.
 */
export function checkJson(
  value: unknown,
  subject: string,
  code: "invalid_request" | "internal_error" = "invalid_request",
): void {
  const problem = value === undefined ? undefined : findForeign(value, "", 0);
  if (problem === undefined) return;
  throw new KitError({
    code,
    message: `${subject} is not JSON: ${problem}.`,
    hint: "Use plain objects, arrays, strings, finite numbers, booleans and null; write a date as an ISO string.",
  });
}

/** Whether JSON keeps a value unchanged. */
export function isJson(value: unknown): boolean {
  return findForeign(value, "", 0) === undefined;
}

/** Describes the first value that is not JSON: `items[2].when is a Date`. */
function findForeign(value: unknown, path: string, depth: number): string | undefined {
  const subject = path === "" ? "it" : path;
  if (value === null || typeof value === "string" || typeof value === "boolean") return undefined;
  if (typeof value === "number") return Number.isFinite(value) ? undefined : `${subject} is ${value}`;
  if (typeof value !== "object")
    return `${subject} is ${typeof value === "undefined" ? "" : "a "}${typeof value}`;
  if (depth === maxDepth) return "it is nested too deep, or contains itself";
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const problem = findForeign(value[index], `${path}[${index}]`, depth + 1);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null && !isPlainElsewhere(prototype)) {
    return `${subject} is a ${nameOf(value)}`;
  }
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined) continue;
    const problem = findForeign(member, path === "" ? key : `${path}.${key}`, depth + 1);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** An object of another realm (a `vm`, a test runner) has another `Object.prototype`. */
function isPlainElsewhere(prototype: unknown): boolean {
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype as object, "__lookupGetter__");
}

function nameOf(value: object): string {
  const name: unknown = value.constructor?.name;
  return typeof name === "string" && name !== "" ? name : "class instance";
}

/** Whether a journal can store a name unchanged. */
export function isName(name: unknown): boolean {
  if (typeof name !== "string" || name === "" || name.length > 256) return false;
  // The database would change a lone surrogate or a NUL.
  return name.isWellFormed() && !name.includes("\0");
}
