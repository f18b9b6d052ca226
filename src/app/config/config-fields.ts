import * as z from "zod/mini";
import { suggest } from "../../base/suggest.ts";
import type { ErrorIssue } from "../../protocol/errors.ts";

/** A table with these keys and no others, each of which may be missing. */
export function table<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  return z.partial(z.strictObject(shape, { error: tableError(Object.keys(shape)) }));
}

/** A table that must have some of its keys. */
export function tableWith<Required extends z.core.$ZodLooseShape, Shape extends z.core.$ZodLooseShape>(
  required: Required,
  shape: Shape,
) {
  const known = [...Object.keys(required), ...Object.keys(shape)];
  return z.extend(z.strictObject(required, { error: tableError(known) }), table(shape).shape);
}

/** For each unknown key the known one that is near, one a line: `toIssues` knows where they stand. */
function tableError(known: readonly string[]) {
  return (issue: z.core.$ZodRawIssue): string =>
    issue.code === "unrecognized_keys"
      ? issue.keys.map((key) => suggest(key, known) ?? noNear).join("\n")
      : expecting("a table")(issue);
}

/** A text of 1 to 4,096 characters. */
export const text = textOf(1, 4_096);
/** A text of several lines, such as instructions. */
export const longText = textOf(0, 100_000);
export const flag = z.boolean({ error: expecting("true or false") });
/** A number from 0 up, such as dollars. */
export const amount = numberFrom(0);

/** Variables for a program: a list of names to hand on, or names with values. */
export const variables = z.union([list(text), dictionary(text)]);

export function list<Item extends z.core.$ZodType>(item: Item) {
  return z.array(item, { error: expecting("a list") });
}

/** A table whose keys are names of the user's own. */
export function dictionary<Item extends z.core.$ZodType>(item: Item) {
  return z.record(z.string(), item, { error: expecting("a table") });
}

/** A value, or a list of at least one. */
export function oneOrMore<Item extends z.core.$ZodType>(item: Item) {
  return z.union([item, list(item).check(z.minLength(1, { error: "must not be empty" }))]);
}

/** A whole number between `min` and `max`. */
export function integer(min: number, max: number) {
  const error = expecting(`a whole number from ${min} to ${max}`);
  return z.int({ error }).check(z.minimum(min, { error }), z.maximum(max, { error }));
}

/** One of a closed set of names. */
export function name<const Name extends string>(names: readonly Name[]) {
  return z.enum(names, { error: amongNames(names) });
}

/** A text that `accepts` accepts; `what` completes the sentence "must be …". */
export function textLike(what: string, accepts: (text: string) => boolean) {
  const error = expecting(what);
  return z.string({ error }).check(z.refine(accepts, { error }));
}

/** A value of a program, which only `kit.config.ts` can hold. */
export function live<Value>(what: string, accepts: (value: unknown) => value is Value) {
  return z.custom<Value>(accepts, { error: expecting(what) });
}

type Message = (issue: { readonly input?: unknown }) => string;

/** Says what must stand there and what does, never a text itself: it may be a key. */
export function expecting(what: string): Message {
  return ({ input }) => (input === undefined ? "is required" : `must be ${what}, not ${describe(input)}`);
}

/** Says which names there are, and which one was meant. */
export function amongNames(names: readonly string[]): Message {
  return ({ input }) => {
    if (typeof input !== "string") return expecting(`one of ${names.join(", ")}`)({ input });
    const near = suggest(input, names);
    const meant = near === undefined ? "" : `; did you mean ${near}?`;
    return `must be one of ${names.join(", ")}, not ${JSON.stringify(input.slice(0, 80))}${meant}`;
  };
}

/** The message for a choice between names and a value of a program. */
export function nameOr(
  names: readonly string[],
  what: string,
): (issue: { readonly input?: unknown }) => string {
  return (issue) =>
    typeof issue.input === "string"
      ? amongNames(names)(issue)
      : expecting(`${names.join(", ")} or (only in kit.config.ts) ${what}`)(issue);
}

/**
 * Checks a value against a schema of these fields: the value as the schema has it, or every fault, each with its key
 * (`server.port`).
 */
export function checkFields<Schema extends z.core.$ZodType>(
  schema: Schema,
  value: unknown,
): { readonly value?: z.core.output<Schema>; readonly issues: readonly ErrorIssue[] } {
  const result = z.safeParse(schema, value);
  if (result.success) {
    dropUndefined(result.data, value);
    return { value: result.data, issues: [] };
  }
  return { issues: result.error.issues.flatMap((issue) => toIssues(issue, [])) };
}

/**
 * Removes the keys that hold `undefined`, so that a program can write `{ port: condition ? 1 : undefined }` and readers
 * may spread the result over defaults. The schema copies its tables; a value that it hands on as it is (an adapter)
 * belongs to the program and stays untouched.
 */
function dropUndefined(checked: unknown, given: unknown): void {
  if (checked === given || !isObject(checked) || !isObject(given)) return;
  for (const [key, value] of Object.entries(checked)) {
    if (value === undefined) delete checked[key];
    else dropUndefined(value, given[key]);
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

const noNear = "-";

function toIssues(issue: z.core.$ZodIssue, above: readonly PropertyKey[]): readonly ErrorIssue[] {
  const at = [...above, ...issue.path];
  if (issue.code === "unrecognized_keys") {
    const near = issue.message.split("\n");
    return issue.keys.map((key, index) => {
      const meant = near[index] ?? noNear;
      const question = meant === noNear ? "" : `; did you mean ${keyPath([...at, meant])}?`;
      return { path: keyPath([...at, key]), message: `is no key of kit${question}` };
    });
  }
  if (issue.code === "invalid_union" && issue.errors.length > 0) {
    // The branch that fits in kind says best what is wrong inside.
    const inside = issue.errors.find((errors) =>
      errors.every(
        ({ path, code }) => path.length > 0 || code === "unrecognized_keys" || code === "too_small",
      ),
    );
    const chosen = inside ?? (issue.message === unsaid ? issue.errors[0] : undefined);
    if (chosen !== undefined) return chosen.flatMap((error) => toIssues(error, at));
  }
  return [{ path: keyPath(at) || "the configuration", message: issue.message }];
}

/** The message of a union that has none of its own. */
const unsaid = "Invalid input";

function keyPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((above, key) => {
    if (typeof key === "number") return `${above}[${key}]`;
    return above === "" ? String(key) : `${above}.${String(key)}`;
  }, "");
}

function textOf(min: number, max: number) {
  const error = expecting("a text");
  return z
    .string({ error })
    .check(
      z.minLength(min, { error }),
      z.maxLength(max, { error, abort: true }),
      z.regex(/^[^\0]*$/, { error }),
    );
}

function numberFrom(min: number) {
  const error = expecting(`a number from ${min} up`);
  return z.number({ error }).check(z.minimum(min, { error }));
}

function describe(value: unknown): string {
  if (value === undefined) return "missing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "string") return value === "" ? "an empty text" : "a text";
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean")
    return String(value);
  return typeof value === "function" ? "a function" : "a table";
}
