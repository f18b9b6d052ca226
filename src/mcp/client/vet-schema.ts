import { limits } from "./limits.ts";
import {
  isPlainObject,
  type NormalizedSchema,
  normalizeSchema,
  pointerOf,
  SchemaFault,
  type SchemaObject,
} from "./normalize-schema.ts";
import { schemaKeywords, subschemasOf } from "./schema-keywords.ts";

/** A stranger's schema of arguments, fit for providers and for kit's own validator. */
export interface VettedSchema {
  /** For the model. Always an object schema. */
  readonly shown: SchemaObject;
  /** For the validator; absent where checking could take for ever, so that only the server checks. */
  readonly checked?: SchemaObject;
  /** What providers refuse at the root of a schema, to be said in words; absent where there is none. */
  readonly alternatives?: SchemaObject;
}

/** Providers take a schema only if none of these stands at its root. */
const notAtRoot: ReadonlySet<string> = new Set([
  "allOf",
  "anyOf",
  "oneOf",
  "not",
  "if",
  "then",
  "else",
  "enum",
  "const",
  "$ref",
]);

// Anthropic refuses a request in which one tool has a property with another name.
const propertyName = /^[a-zA-Z0-9_.-]{1,64}$/;

/** Vets the input schema of a tool. Throws `SchemaFault`, whose message ends "its schema …". */
export function vetSchema(raw: unknown): VettedSchema {
  checkSize(raw);
  const normalized = normalizeSchema(raw);
  const { schema } = normalized;
  if (schema.type !== undefined && schema.type !== "object")
    throw new SchemaFault("is not that of an object");
  const whole: SchemaObject = { ...schema, type: "object" };
  for (const name of Object.keys(isPlainObject(whole.properties) ? whole.properties : {})) {
    if (!propertyName.test(name)) throw new SchemaFault("has a property whose name providers refuse");
  }
  const entries = Object.entries(whole);
  const alternatives = entries.filter(([keyword]) => notAtRoot.has(keyword));
  const shown = {
    properties: {},
    ...Object.fromEntries(entries.filter(([keyword]) => !notAtRoot.has(keyword))),
  };
  const checked = visitsOf(normalized) > limits.schemaVisits ? undefined : relaxed(whole);
  return {
    shown,
    ...(checked === undefined ? {} : { checked }),
    ...(alternatives.length === 0 ? {} : { alternatives: Object.fromEntries(alternatives) }),
  };
}

function checkSize(raw: unknown): void {
  let text: string | undefined;
  try {
    text = JSON.stringify(raw);
  } catch (error) {
    // Nested so deeply that there is no stack for it.
    throw new SchemaFault(`is deeper than ${limits.schemaDepth} levels`, { cause: error });
  }
  if (text === undefined) throw new SchemaFault("is missing");
  if (text.length > limits.schemaChars)
    throw new SchemaFault(`is longer than ${limits.schemaChars} characters`);
  // JSON.stringify writes half a surrogate pair as an escape; providers refuse it as no Unicode.
  if (/(?<!\\)(?:\\\\)*\\ud[89a-f]/.test(text)) throw new SchemaFault("is not Unicode");
}

/**
 * How many subschemas a validator may visit for one value: every way from the root to a schema counts,
 * references followed, so that schemas that refer to each other twice on each of many levels are found.
 * Infinite for recursive ones.
 */
function visitsOf({ schema, parts }: NormalizedSchema): number {
  const known = new Map<unknown, number>();
  const visit = (part: unknown): number => {
    if (!isPlainObject(part)) return 1;
    const before = known.get(part);
    if (before !== undefined) return before;
    // Found again before its own count is known, it refers to itself.
    known.set(part, Number.POSITIVE_INFINITY);
    let count = 1;
    const reference = part.$ref;
    if (typeof reference === "string") count += visit(parts.get(pointerOf(reference)));
    for (const below of subschemasOf(part)) {
      if (below.keyword !== "$defs" && below.keyword !== "definitions") count += visit(below.schema);
    }
    known.set(part, count);
    return count;
  };
  return visit(schema);
}

/** Where dropping a rule below could turn a valid value into an invalid one. */
const strictKeywords: ReadonlySet<string> = new Set(["not", "if", "oneOf", "contains"]);

/**
 * A copy for the validator without regular expressions, which a hostile server could make run for ever,
 * and without formats, which it can too and which are remarks only. What the copy refuses, the schema
 * refuses; undefined where that cannot be had. The server checks the rest.
 */
function relaxed(schema: SchemaObject): SchemaObject | undefined {
  const text = JSON.stringify(schema);
  const properties = text.includes('"patternProperties"') && text.includes('"unevaluatedProperties"');
  return properties ? undefined : (relax(schema, false) as SchemaObject | undefined);
}

function relax(schema: unknown, strict: boolean): unknown {
  if (!isPlainObject(schema)) return schema;
  const { format, ...rest } = schema;
  const hasPattern = ["pattern", "patternProperties", "uniqueItems"].some((keyword) => keyword in rest);
  if (hasPattern && strict) return undefined;
  const { pattern, patternProperties, uniqueItems, ...kept } = rest;
  // Which properties are additional depends on the patterns.
  const { additionalProperties, ...open } = kept;
  const source: SchemaObject = patternProperties === undefined ? kept : open;
  const entries: [string, unknown][] = [];
  for (const [keyword, value] of Object.entries(source)) {
    const below = strict || strictKeywords.has(keyword);
    const copy = relaxValue(keyword, value, below);
    if (copy === undefined) return undefined;
    entries.push([keyword, copy]);
  }
  return Object.fromEntries(entries);
}

function relaxValue(keyword: string, value: unknown, strict: boolean): unknown {
  const shape = schemaKeywords.get(keyword);
  if (shape === "schema") return relax(value, strict);
  if (shape === "schemas" && Array.isArray(value)) {
    const items = value.map((item) => relax(item, strict));
    return items.includes(undefined) ? undefined : items;
  }
  if (shape === "schema_map" && isPlainObject(value)) {
    const entries = Object.entries(value).map(([name, item]) => [name, relax(item, strict)] as const);
    return entries.some(([, item]) => item === undefined) ? undefined : Object.fromEntries(entries);
  }
  return value;
}
