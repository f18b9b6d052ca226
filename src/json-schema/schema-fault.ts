import { attempt } from "../base/attempt.ts";
import { suggest } from "../base/error-text.ts";
import { isRecord } from "../base/record.ts";
import { isStandardSchema } from "../base/standard-schema.ts";
import {
  createSchemaDocument,
  type KeywordShape,
  own,
  type SchemaDocument,
  schemaKeywords,
  schemaTypes,
} from "./schema-document.ts";

/**
 * Describes why a value is neither a Standard Schema nor a valid JSON Schema, as the rest of a sentence; undefined for a
 * schema. An object of schemas would otherwise be a JSON Schema that accepts everything.
 */
export function faultOfSchema(value: unknown): string | undefined {
  const form = "must be a schema: of zod, valibot, …, or JSON Schema";
  if (isStandardSchema(value)) return undefined;
  if (!isRecord(value)) return form;
  return Object.values(value).some(isStandardSchema)
    ? `${form}, not an object of schemas; wrap it: z.object({ … })`
    : faultOfJsonSchema(value);
}

/** Schemas without a fault, so that each is checked once. */
const valid = new WeakSet<object>();

/**
 * Describes the first fault of a JSON Schema as the rest of a sentence: "is not a valid JSON Schema: `properties.a.type`
 * must be …". Unknown keywords and formats are no fault, and neither are the keywords of older drafts that kit checks.
 * A reference without a target and a pattern that kit cannot match are faults: no value would ever be valid.
 */
export function faultOfJsonSchema(schema: unknown): string | undefined {
  if (!isRecord(schema)) return "must be a JSON Schema";
  if (valid.has(schema)) return undefined;
  const document = createSchemaDocument(schema);
  const fault = faultAt(schema, { path: [], document, schema, open: new Set(), done: new Set() });
  if (fault !== undefined) return `is not a valid JSON Schema: ${fault}`;
  valid.add(schema);
  return undefined;
}

/** Deeper schemas are refused; the check of a value goes no deeper either. */
const maxDepth = 500;

interface Place {
  /** Keywords, names and indices from the root of the schema. */
  readonly path: readonly (string | number)[];
  readonly document: SchemaDocument;
  /** The schema that the path is in. */
  readonly schema: object;
  /** The schemas around this one. */
  readonly open: Set<unknown>;
  /** The schemas without a fault: a program can use one object many times. */
  readonly done: Set<unknown>;
}

type Rule = (value: unknown, place: Place) => string | undefined;

function faultAt(schema: unknown, place: Place): string | undefined {
  if (typeof schema === "boolean") return undefined;
  if (isStandardSchema(schema))
    return `\`${pathText(place)}\` must be JSON Schema, like the schema around it, not a schema of zod, valibot, …`;
  if (!isRecord(schema)) return expected("a schema: an object, true or false", schema, place);
  if (place.done.has(schema)) return undefined;
  if (place.open.has(schema)) return `\`${pathText(place)}\` contains itself; use $ref instead`;
  if (place.open.size >= maxDepth) return `it is nested deeper than ${maxDepth} levels`;
  place.open.add(schema);
  for (const [keyword, value] of Object.entries(schema)) {
    const rule = value === undefined ? undefined : rules.get(keyword);
    const fault = rule?.(value, { ...below(place, keyword), schema });
    if (fault !== undefined) return fault;
  }
  place.open.delete(schema);
  place.done.add(schema);
  return undefined;
}

function below(place: Place, key: string | number): Place {
  return { ...place, path: [...place.path, key] };
}

/** A rule for values for which `accepts` returns true; `what` completes the sentence "must be …". */
function must(what: string, accepts: (value: unknown) => boolean): Rule {
  return (value, place) => (accepts(value) ? undefined : expected(what, value, place));
}

const texts = must(
  "a list of texts",
  (value) => Array.isArray(value) && value.every((item) => typeof item === "string"),
);
const shapes: Readonly<Record<KeywordShape, Rule>> = {
  schema: faultAt,
  schemas: (value, place) =>
    Array.isArray(value) && value.length > 0
      ? first(value.entries(), faultAt, place)
      : expected("a list of at least one schema", value, place),
  schema_map: mapOf("an object of schemas, by name", faultAt),
  number: must("a number", (value) => typeof value === "number" && Number.isFinite(value)),
  count: must("a whole number from 0 up", (value) => Number.isInteger(value) && Number(value) >= 0),
  flag: must("true or false", (value) => typeof value === "boolean"),
  text: must("a text", (value) => typeof value === "string"),
  texts,
  text_lists: mapOf("an object of lists, by name", texts),
  types: faultOfTypes,
  value: () => undefined,
  values: must("a list of at least one value", (value) => Array.isArray(value) && value.length > 0),
  reference: faultOfReference,
};

const schemaOrTexts: Rule = (value, place) => (Array.isArray(value) ? texts : faultAt)(value, place);
const rules: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ...[...schemaKeywords].map(([keyword, shape]) => [keyword, shapes[shape]] as const),
  ["pattern", faultOfPattern],
  [
    "patternProperties",
    (value, place) => {
      const patterns = isRecord(value) ? Object.keys(value) : [];
      const pairs = patterns.map((pattern) => [pattern, pattern] as const);
      return first(pairs, faultOfPattern, place) ?? shapes.schema_map(value, place);
    },
  ],
  ["multipleOf", must("a number above 0", (value) => typeof value === "number" && value > 0)],
  ["examples", must("a list", Array.isArray)],
  ["$dynamicRef", faultOfReference],
  ["$id", shapes.text],
  ["$anchor", shapes.text],
  ["$dynamicAnchor", shapes.text],
  // Older drafts have tuples here, and one keyword for two.
  ["items", (value, place) => (Array.isArray(value) ? shapes.schemas : faultAt)(value, place)],
  ["additionalItems", faultAt],
  ["dependencies", mapOf("an object of schemas and lists, by name", schemaOrTexts)],
]);

function mapOf(what: string, rule: Rule): Rule {
  return (value, place) =>
    isRecord(value) && !isStandardSchema(value)
      ? first(Object.entries(value), rule, place)
      : expected(what, value, place);
}

/** Returns the first fault of several values, each below its key. */
function first(
  entries: Iterable<readonly [string | number, unknown]>,
  rule: Rule,
  place: Place,
): string | undefined {
  for (const [key, value] of entries) {
    const fault = rule(value, below(place, key));
    if (fault !== undefined) return fault;
  }
  return undefined;
}

const typeNames: readonly unknown[] = schemaTypes;

function faultOfTypes(value: unknown, place: Place): string | undefined {
  const types: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (types.length === 0) return expected("a type, or a list of at least one", value, place);
  const wrong = types.find((type) => !typeNames.includes(type));
  if (wrong === undefined && !types.includes(undefined)) return undefined;
  const near = typeof wrong === "string" ? suggest(wrong, schemaTypes) : undefined;
  const suggestion = near === undefined ? "" : `; did you mean ${near}?`;
  return `${expected(`one of ${schemaTypes.join(", ")}`, wrong, place)}${suggestion}`;
}

function faultOfReference(value: unknown, place: Place): string | undefined {
  if (typeof value !== "string") return expected("a text", value, place);
  const refers = `\`${pathText(place)}\` refers to ${excerpt(value)}`;
  const seen = new Set<unknown>();
  let from = place.schema;
  for (let reference: unknown = value; typeof reference === "string"; ) {
    const target = place.document.find(reference, from);
    if (target === undefined) return `${refers}, which the schema does not contain`;
    if (typeof target === "boolean") return undefined;
    if (!isRecord(target)) return `${refers}, which is not a schema`;
    if (seen.has(target)) return `${refers}, which leads back to itself without end`;
    seen.add(target);
    from = target;
    reference = own(target, "$ref");
  }
  return undefined;
}

const maxPatternChars = 5_000;

function faultOfPattern(value: unknown, place: Place): string | undefined {
  if (typeof value !== "string") return expected("a text", value, place);
  const name = `the pattern ${excerpt(value)} of \`${pathText(place)}\``;
  if (value.length > maxPatternChars) return `${name} is longer than ${maxPatternChars} characters`;
  // An "x" for each escaped character and class; a back-reference stays.
  const bare = value.replaceAll(/\\(?![1-9]|k<).|\[(?:\\.|[^\]\\])*\]/gs, "x");
  if (/\\(?:[1-9]|k<)|\(\?<?[=!]/.test(bare))
    return `${name} has a look-around or a back-reference, which kit does not match: only patterns that take linear time`;
  if (largestRepeat(bare) > maxRepeat)
    return `${name} repeats a part more than ${maxRepeat} times, which kit does not match; bound the text with maxLength`;
  return isPattern(value) ? undefined : `${name} is not a regular expression`;
}

/** RE2 matches no more: https://github.com/google/re2/wiki/Syntax */
const maxRepeat = 1_000;

/** The largest number of times that a pattern without escapes and classes repeats a part; nested repetitions multiply. */
function largestRepeat(pattern: string): number {
  const groups = [1];
  let last = 1;
  for (const [text, least, most] of pattern.matchAll(/\{(\d+)(?:,(\d*))?\}|./gs)) {
    if (text === "(") groups.push(1);
    if (text === ")" && groups.length > 1) last = groups.pop() ?? 1;
    else last = least === undefined ? 1 : last * Math.max(1, Number(least), Number(most ?? 0));
    groups[groups.length - 1] = Math.max(groups.at(-1) ?? 1, last);
  }
  return Math.max(...groups);
}

/** Accepts expressions of JavaScript, with or without its flag `u`, and flags and names as RE2 writes them. */
function isPattern(pattern: string): boolean {
  const source = pattern.replaceAll("(?P<", "(?<").replaceAll(/\(\?[imsU-]+\)/g, "");
  return ["u", ""].some((flags) => {
    return attempt(() => new RegExp(source, flags) instanceof RegExp, false);
  });
}

function expected(what: string, value: unknown, place: Place): string {
  return `\`${pathText(place)}\` must be ${what}, not ${describe(value)}`;
}

function describe(value: unknown): string {
  if (typeof value === "string") return excerpt(value);
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (typeof value === "object" && value !== null) return "an object";
  return typeof value === "function" ? "a function" : String(value);
}

function excerpt(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}

function pathText({ path }: Place): string {
  return path
    .map((key) => (typeof key === "number" ? `[${key}]` : `.${key}`))
    .join("")
    .slice(1);
}
