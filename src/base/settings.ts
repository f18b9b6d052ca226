import * as z from "zod/mini";
import { suggest, withArticle } from "./error-text.ts";

/** The object that a schema describes; its fields cannot be assigned. */
export type Fields<Schema extends z.core.$ZodType> = Readonly<z.output<Schema>>;

/** An error of a value: the path of the key, `server.port`, and the error as the rest of a sentence. */
export interface Issue {
  readonly path: string;
  readonly message: string;
}

interface Naming {
  /** The name for a key in messages: "field of a profile". */
  readonly of: string;
  /** Names of other tools for a field, and the field. */
  readonly otherNames?: Readonly<Record<string, string>> | undefined;
  /** The name for the object in messages; default "an object". */
  readonly what?: string | undefined;
  /** Whether a suggestion names the key with its path, as in a file. */
  readonly suggestsPath?: boolean | undefined;
}
const ofConfiguration: Naming = { of: "key of kit", what: "a table", suggestsPath: true };

/** A table of a configuration with these optional keys and no others. */
export function table<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  return object(shape, ofConfiguration);
}

/** A table with required and optional keys. */
export function tableWith<Required extends z.core.$ZodLooseShape, Shape extends z.core.$ZodLooseShape>(
  required: Required,
  shape: Shape,
) {
  return objectWith({ required, optional: shape }, ofConfiguration);
}

/** An object of a program with these optional fields and no others. */
export function object<Shape extends z.core.$ZodLooseShape>(shape: Shape, naming: Naming) {
  return z.partial(z.strictObject(shape, { error: keysError(Object.keys(shape), naming) }));
}

/** An object of a program with required and optional fields. */
export function objectWith<Required extends z.core.$ZodLooseShape, Optional extends z.core.$ZodLooseShape>(
  { required, optional }: { readonly required: Required; readonly optional: Optional },
  naming: Naming,
) {
  const known = Object.keys({ ...required, ...optional });
  const error = keysError(known, naming);
  return z.extend(z.strictObject(required, { error }), z.partial(z.object(optional)).shape);
}

/**
 * An object whose type is an interface, because it has type parameters or methods. The compiler requires a schema of
 * each field. The fields in `needs` are required, all others are optional.
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

/** Returns a message for each unknown key, one per line. `toIssues` replaces `pathMark` with the path of the object. */
function keysError(
  known: readonly string[],
  { of, otherNames = {}, what = "an object", suggestsPath = false }: Naming,
) {
  return (issue: z.core.$ZodRawIssue): string => {
    if (issue.code !== "unrecognized_keys") return expecting(what)(issue);
    const lines = issue.keys.map((key) => {
      const near = Object.hasOwn(otherNames, key) ? otherNames[key] : suggest(key, known);
      if (near === undefined) return `is not ${withArticle(of)}`;
      return `is not ${withArticle(of)}; did you mean ${suggestsPath ? pathMark : ""}${near}?`;
    });
    return lines.join("\n");
  };
}

const pathMark = "\0";

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

/** Environment variables for a program: a list of names that it inherits, or names with values. */
export const variables = z.union([list(text), dictionary(text)]);

export function list<Item extends z.core.$ZodType>(item: Item, what = "a list") {
  const schema = z.array(item, { error: expecting(what) });
  return schema as z.ZodMiniType<readonly z.output<Item>[], readonly z.input<Item>[]>;
}

/** A table whose keys are names that the user chooses. */
export function dictionary<Item extends z.core.$ZodType>(item: Item) {
  return z.record(z.string(), item, { error: expecting("a table") });
}

/** One value, or a list of at least one. */
export function oneOrMore<Item extends z.core.$ZodType>(item: Item) {
  return z.union([item, list(item).check(z.minLength(1, { error: "must not be empty" }))]);
}

/** A whole number from `min` to `max`. */
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

/**
 * A text that a pattern without flags matches, and for which `accepts` returns true; `what` completes the sentence
 * "must be …". A JSON Schema states the pattern only.
 */
export function textLike<Text extends string = string>(
  what: string,
  pattern: RegExp,
  accepts?: ((text: string) => text is Text) | ((text: string) => boolean),
) {
  const error = expecting(what);
  const shaped = z.string({ error }).check(z.regex(pattern, { error, abort: true }));
  const checked = accepts === undefined ? shaped : shaped.check(z.refine(accepts, { error }));
  return checked as unknown as z.ZodMiniType<Text, Text>;
}

/** Adds keywords to the JSON Schema of a schema, for a rule that its check applies: a choice between two keys. */
export function withJsonSchema<Schema extends z.core.$ZodType>(
  schema: Schema,
  keywords: Readonly<Record<string, unknown>>,
): Schema {
  z.globalRegistry.add(schema, keywords);
  return schema;
}

/** An address of HTTP for a pattern; the address must also be one that `URL` parses. */
export const httpAddress = /^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^/?#\s]+(?:[/?#]\S*)?$/;

/**
 * A value that only a program can hold, not a file. `what` completes the sentence "must be …"; a function gets the
 * wrong value and returns that text.
 */
export function live<Value>(
  what: string | ((value: unknown) => string),
  accepts: (value: unknown) => boolean,
): z.ZodMiniType<Value> {
  const error =
    typeof what === "string" ? expecting(what) : ({ input }: WithInput) => `must be ${what(input)}`;
  return z.custom<Value>(accepts, { error });
}

/** A function of a program. */
export function callback<Call extends (...args: never[]) => unknown>() {
  return live<Call>("a function", (value) => typeof value === "function");
}

interface WithInput {
  readonly input?: unknown;
}
type Message = (issue: WithInput) => string;

/** Creates a message that names the expected and the actual kind of value; never a text itself, which can be a key. */
export function expecting(what: string): Message {
  return ({ input }) => (input === undefined ? "is required" : `must be ${what}, not ${describe(input)}`);
}

/** Creates a message that lists the names and suggests the most similar one. */
export function amongNames(names: readonly string[]): Message {
  return ({ input }) => {
    if (typeof input !== "string") return expecting(`one of ${names.join(", ")}`)({ input });
    const near = suggest(input, names);
    const suggestion = near === undefined ? "" : `; did you mean ${near}?`;
    return `must be one of ${names.join(", ")}, not ${JSON.stringify(input.slice(0, 80))}${suggestion}`;
  };
}

/** Creates the message for a choice between names and a value of a program. */
export function nameOr(names: readonly string[], what: string): Message {
  return (issue) =>
    typeof issue.input === "string"
      ? amongNames(names)(issue)
      : expecting(`${names.join(", ")} or (only in kit.config.ts) ${what}`)(issue);
}

/** Checks a value. Returns the value as the schema parsed it, or one issue for each error. */
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
 * Returns the first error of a value from a program without types, as a sentence without a full stop:
 * "`budget.maxTurn` is not a limit of a budget; did you mean maxTurns?". `path` is the path of the value: `["tools", 0]`.
 */
export function faultOf(
  schema: z.core.$ZodType,
  value: unknown,
  path: readonly PropertyKey[] = [],
): string | undefined {
  const result = z.safeParse(schema, value);
  if (result.success) return undefined;
  // An unknown field comes first: it can be a misspelling of a field that is reported as missing.
  const { issues } = result.error;
  const first = issues
    .filter(({ code }) => code === "unrecognized_keys")
    .concat(issues)
    .slice(0, 1);
  const [issue] = first.flatMap((zodIssue) => toIssues(zodIssue, path));
  if (issue === undefined || issue.path === "") return issue?.message;
  return `\`${issue.path}\` ${issue.message.replace(/, not a table$/, ", not an object")}`;
}

/**
 * Removes the keys that hold `undefined`, so that a program can write `{ port: condition ? 1 : undefined }` and readers
 * can spread the result over defaults. The schema copies its tables; a value that it passes on uncopied (an adapter)
 * belongs to the program and is not changed.
 */
function dropUndefined(checked: unknown, input: unknown): void {
  if (checked === input || !hasKeys(checked) || !hasKeys(input)) return;
  for (const [key, value] of Object.entries(checked)) {
    if (value === undefined) delete checked[key];
    else dropUndefined(value, input[key]);
  }
}

/** Whether a value is an object or an array. */
function hasKeys(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function toIssues(issue: z.core.$ZodIssue, parent: readonly PropertyKey[]): readonly Issue[] {
  const at = [...parent, ...issue.path];
  if (issue.code === "unrecognized_keys") {
    const messages = issue.message.split("\n");
    const prefix = at.length === 0 ? "" : `${keyPath(at)}.`;
    return issue.keys.map((key, index) => ({
      path: keyPath([...at, key]),
      message: (messages[index] ?? "is not known").replace(pathMark, prefix),
    }));
  }
  if (issue.code === "invalid_union" && issue.errors.length > 0) {
    // A branch that accepts the kind of value has the most helpful errors.
    const inside = issue.errors.find((errors) =>
      errors.every(
        ({ path, code }) => path.length > 0 || code === "unrecognized_keys" || code === "too_small",
      ),
    );
    const chosen = inside ?? (issue.message === defaultMessage ? issue.errors[0] : undefined);
    if (chosen !== undefined) return chosen.flatMap((error) => toIssues(error, at));
  }
  return [{ path: keyPath(at), message: issue.message }];
}

/** zod's message for a union whose schema sets no message. */
const defaultMessage = "Invalid input";

/** Formats `["tools", 0, "name"]` as `tools[0].name`. */
export function keyPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((parent, key) => {
    if (typeof key === "number") return `${parent}[${key}]`;
    return parent === "" ? String(key) : `${parent}.${String(key)}`;
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
