import { isRecord } from "../../base/record.ts";

/** Levels of lists and objects that are compared; a value below is compared by identity. */
const maxDepth = 4;
/** A longer list or object counts as different each time: comparing it could cost more than it saves. */
const maxItems = 200;

/** Copies lists and objects of data, so that later changes of the value do not change the copy. All else stays the same. */
export function copyOf(value: unknown, depth = 0): unknown {
  if (depth === maxDepth) return value;
  if (Array.isArray(value))
    return value.length > maxItems ? differs() : value.map((item) => copyOf(item, depth + 1));
  if (!isData(value)) return value;
  const entries = Object.entries(value);
  if (entries.length > maxItems) return differs();
  return Object.fromEntries(entries.map(([key, item]) => [key, copyOf(item, depth + 1)]));
}

const differs = (): symbol => Symbol("differs");

/** Whether a value has the same lists and objects of data as a copy, with the same values and other objects in them. */
export function isSame(copy: unknown, value: unknown, depth = 0): boolean {
  if (Object.is(copy, value)) return true;
  if (depth === maxDepth) return false;
  if (Array.isArray(copy))
    return (
      Array.isArray(value) &&
      copy.length === value.length &&
      copy.every((item, index) => isSame(item, value[index], depth + 1))
    );
  if (!isData(copy) || !isData(value)) return false;
  const keys = Object.keys(copy);
  return (
    keys.length === Object.keys(value).length &&
    keys.every((key) => Object.hasOwn(value, key) && isSame(copy[key], value[key], depth + 1))
  );
}

/**
 * A plain object whose properties are all values that anyone can list. A method of another object could read what that object
 * alone has, over `this`, so such an object is the same only if it is the very one.
 */
function isData(value: unknown): value is Readonly<Record<string, unknown>> {
  if (!isRecord(value) || Object.getPrototypeOf(value) !== Object.prototype) return false;
  return Reflect.ownKeys(value).every((key) => {
    const property = Object.getOwnPropertyDescriptor(value, key);
    return (
      typeof key === "string" &&
      property?.enumerable === true &&
      "value" in property &&
      typeof property.value !== "function"
    );
  });
}
