import * as z from "zod/mini";
import { suggest, withArticle } from "./suggest.ts";

/** The object that a schema describes; its fields cannot be assigned. */
export type Fields<Schema extends z.core.$ZodType> = Readonly<z.output<Schema>>;

/** A fault: the path of a key, `server.port`, and what is wrong with it, as the rest of a sentence. */
export interface Issue {
  readonly path: string;
  readonly message: string;
}

interface Naming {
  /** The name for a key in messages: "field of a profile". */
  readonly of: string;
  /** Names that other tools have for a field, and what to write instead. */
  readonly otherNames?: Readonly<Record<string, string>> | undefined;
  /** The name for the object in messages; default "an object". */
  readonly what?: string | undefined;
  /** Whether the key that was meant is named with its path, as in a file. */
  readonly inFull?: boolean | undefined;
}
const ofConfiguration: Naming = { of: "key of kit", what: "a table", inFull: true };

/** A table of a configuration with these keys and no others, each of which may be missing. */
export function table<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  return object(shape, ofConfiguration);
}

/** A table that must have some of its keys. */
export function tableWith<Required extends z.core.$ZodLooseShape, Shape extends z.core.$ZodLooseShape>(
  required: Required,
  shape: Shape,
) {
  return objectWith({ required, optional: shape }, ofConfiguration);
}

/** An object of a program with these fields and no others, each of which may be missing. */
export function object<Shape extends z.core.$ZodLooseShape>(shape: Shape, naming: Naming) {
  return z.partial(z.strictObject(shape, { error: keysError(Object.keys(shape), naming) }));
}

/** An object of a program that must have some of its fields. */
export function objectWith<Required extends z.core.$ZodLooseShape, Optional extends z.core.$ZodLooseShape>(
  { required, optional }: { readonly required: Required; readonly optional: Optional },
  naming: Naming,
) {
  const known = Object.keys({ ...required, ...optional });
  const error = keysError(known, naming);
  return z.extend(z.strictObject(required, { error }), z.partial(z.object(optional)).shape);
}

/**
 * An object whose type is an interface, because it has type parameters or methods; the compiler asks for a schema of
 * each of its fields. Only those of `needs` must be there.
 */
export function objectOf<Value extends object>() {
  return (
    shape: { readonly [Name in keyof Value]-?: z.core.$ZodType },
    { needs, ...naming }: Naming & { readonly needs: readonly (keyof Value)[] },
  ): z.ZodMiniType<Value> => {
    const required = Object.fromEntries(needs.map((field) => [field, shape[field]]));
    return objectWith({ required, optional: omit(shape, needs) }, naming) as unknown as z.ZodMiniType<Value>;
  };
}

function omit(shape: object, names: readonly PropertyKey[]): Record<string, z.core.$ZodType> {
  return Object.fromEntries(Object.entries(shape).filter(([name]) => !names.includes(name)));
}

/** The message for each unknown key, one a line. `toIssues` puts the path of the object where `here` stands. */
function keysError(
  known: readonly string[],
  { of, otherNames = {}, what = "an object", inFull = false }: Naming,
) {
  return (issue: z.core.$ZodRawIssue): string => {
    if (issue.code !== "unrecognized_keys") return expecting(what)(issue);
    const lines = issue.keys.map((key) => {
      const near = Object.hasOwn(otherNames, key) ? otherNames[key] : suggest(key, known);
      if (near === undefined) return `is not ${withArticle(of)}`;
      return `is not ${withArticle(of)}; did you mean ${inFull ? here : ""}${near}?`;
    });
    return lines.join("\n");
  };
}

const here = "\0";

/** A text of a configuration: 1 to 4,096 characters. */
export const text = textOf(1, 4_096);
/** A text of several lines, such as instructions. */
export const longText = textOf(0, 100_000);
export const finite = z.number({ error: expecting("a number") });
/** Any text of a program. */
export const string = z.string({ error: expecting("a text") });
export const flag = z.boolean({ error: expecting("true or false") });
/** A number from 0 up, such as dollars. */
export const amount = numberFrom(0);

/** Variables for a program: a list of names to hand on, or names with values. */
export const variables = z.union([list(text), dictionary(text)]);

export function list<Item extends z.core.$ZodType>(item: Item, what = "a list") {
  const schema = z.array(item, { error: expecting(what) });
  return schema as z.ZodMiniType<readonly z.output<Item>[], readonly z.input<Item>[]>;
}

/** A table whose keys are names of the user's own. */
export function dictionary<Item extends z.core.$ZodType>(item: Item) {
  return z.record(z.string(), item, { error: expecting("a table") });
}

/** A value, or a list of at least one. */
export function oneOrMore<Item extends z.core.$ZodType>(item: Item) {
  return z.union([item, list(item).check(z.minLength(1, { error: "must not be empty" }))]);
}

/** A whole number from `min` up, and up to `max` where there is one. */
export function integer(min: number, max = Number.MAX_SAFE_INTEGER) {
  const error = expecting(
    `a whole number from ${min} ${max === Number.MAX_SAFE_INTEGER ? "up" : `to ${max}`}`,
  );
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

/**
 * A value of a program, which no file can hold. `what` completes the sentence "must be …"; as a function, it says what
 * is wrong with the very value.
 */
export function live<Value>(
  what: string | ((value: unknown) => string),
  accepts: (value: unknown) => boolean,
): z.ZodMiniType<Value> {
  const error = typeof what === "string" ? expecting(what) : ({ input }: Given) => `must be ${what(input)}`;
  return z.custom<Value>(accepts, { error });
}

/** A function of a program. */
export function callback<Call extends (...given: never[]) => unknown>() {
  return live<Call>("a function", (value) => typeof value === "function");
}

interface Given {
  readonly input?: unknown;
}
type Message = (issue: Given) => string;

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
export function nameOr(names: readonly string[], what: string): Message {
  return (issue) =>
    typeof issue.input === "string"
      ? amongNames(names)(issue)
      : expecting(`${names.join(", ")} or (only in kit.config.ts) ${what}`)(issue);
}

/** Checks a value: the value as the schema has it, or every fault. */
export function checkSettings<Schema extends z.core.$ZodType>(
  schema: Schema,
  value: unknown,
): { readonly value?: z.core.output<Schema>; readonly issues: readonly Issue[] } {
  const result = z.safeParse(schema, value);
  if (result.success) {
    dropUndefined(result.data, value);
    return { value: result.data, issues: [] };
  }
  return { issues: result.error.issues.flatMap((issue) => toIssues(issue, [])) };
}

/**
 * The first fault of a value that plain JavaScript may have written, as a sentence without its end: "`budget.maxTurn`
 * is not a limit of a budget; did you mean maxTurns?". `path` is where the value stands: `["tools", 0]`.
 */
export function faultOf(
  schema: z.core.$ZodType,
  value: unknown,
  path: readonly PropertyKey[] = [],
): string | undefined {
  const result = z.safeParse(schema, value);
  if (result.success) return undefined;
  // A misspelled field explains the one that is missing.
  const { issues } = result.error;
  const first = issues
    .filter(({ code }) => code === "unrecognized_keys")
    .concat(issues)
    .slice(0, 1);
  const [fault] = first.flatMap((issue) => toIssues(issue, path));
  if (fault === undefined || fault.path === "") return fault?.message;
  return `\`${fault.path}\` ${fault.message.replace(/, not a table$/, ", not an object")}`;
}

/**
 * Removes the keys that hold `undefined`, so that a program can write `{ port: condition ? 1 : undefined }` and readers
 * may spread the result over defaults. The schema copies its tables; a value that it hands on as it is (an adapter)
 * belongs to the program and stays untouched.
 */
function dropUndefined(checked: unknown, given: unknown): void {
  if (checked === given || !hasKeys(checked) || !hasKeys(given)) return;
  for (const [key, value] of Object.entries(checked)) {
    if (value === undefined) delete checked[key];
    else dropUndefined(value, given[key]);
  }
}

// Lists, too.
function hasKeys(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function toIssues(issue: z.core.$ZodIssue, above: readonly PropertyKey[]): readonly Issue[] {
  const at = [...above, ...issue.path];
  if (issue.code === "unrecognized_keys") {
    const messages = issue.message.split("\n");
    const place = at.length === 0 ? "" : `${keyPath(at)}.`;
    return issue.keys.map((key, index) => ({
      path: keyPath([...at, key]),
      message: (messages[index] ?? "is not known").replace(here, place),
    }));
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
  return [{ path: keyPath(at), message: issue.message }];
}

/** The message of a union that has none of its own. */
const unsaid = "Invalid input";

/** `["tools", 0, "name"]` as `tools[0].name`. */
export function keyPath(path: readonly PropertyKey[]): string {
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
