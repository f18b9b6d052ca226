import { KitError } from "../../base/kit-error.ts";

/** Deeper than any record, and far from what the stack can hold. */
const maxDepth = 200;

/**
 * Throws for a value that would not come back from JSON as it is: a replay must give what the first run
 * gave. Members that are undefined are left out, as JSON does. `what` begins the message: `The result of
 * step "charge"`. Whose fault it is says the code: `internal_error` of what a workflow's own code gives.
 */
export function checkJson(
  value: unknown,
  what: string,
  code: "invalid_request" | "internal_error" = "invalid_request",
): void {
  const found = value === undefined ? undefined : findForeign(value, "", 0);
  if (found === undefined) return;
  throw new KitError({
    code,
    message: `${what} is not JSON: ${found}.`,
    hint: "Give plain objects, arrays, texts, finite numbers, booleans and null; a date as its ISO text.",
  });
}

/** Whether a value comes back from JSON as it is. */
export function isJson(value: unknown): boolean {
  return findForeign(value, "", 0) === undefined;
}

/** The first place that holds no JSON, and what it holds: `items[2].when is a Date`. */
function findForeign(value: unknown, path: string, depth: number): string | undefined {
  const place = path === "" ? "it" : path;
  if (value === null || typeof value === "string" || typeof value === "boolean") return undefined;
  if (typeof value === "number") return Number.isFinite(value) ? undefined : `${place} is ${value}`;
  if (typeof value !== "object")
    return `${place} is ${typeof value === "undefined" ? "" : "a "}${typeof value}`;
  if (depth === maxDepth) return "it is nested too deep, or contains itself";
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const found = findForeign(value[index], `${path}[${index}]`, depth + 1);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null && !isPlainElsewhere(prototype)) {
    return `${place} is a ${nameOf(value)}`;
  }
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined) continue;
    const found = findForeign(member, path === "" ? key : `${path}.${key}`, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** An object of another realm (a `vm`, a test runner) has an `Object.prototype` of its own. */
function isPlainElsewhere(prototype: unknown): boolean {
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype as object, "__lookupGetter__");
}

function nameOf(value: object): string {
  const name: unknown = value.constructor?.name;
  return typeof name === "string" && name !== "" ? name : "class instance";
}

/** Whether a journal can hold a name as it is. */
export function isName(name: unknown): boolean {
  if (typeof name !== "string" || name === "" || name.length > 256) return false;
  // A lone half of a surrogate pair, or a NUL, would come back from the database as something else.
  return name.isWellFormed() && !name.includes("\0");
}
