import { percentDecoded } from "../percent.ts";

/** The shape of the value of a JSON Schema keyword. */
export type KeywordShape =
  | "schema"
  | "schemas"
  | "schema_map"
  | "number"
  | "count"
  | "flag"
  | "text"
  | "texts"
  | "text_lists"
  | "types"
  | "value"
  | "values"
  | "reference";

/**
 * The keywords of JSON Schema 2020-12 that check or describe a value, and `definitions`, the older name of `$defs`.
 *
 * @see https://json-schema.org/draft/2020-12/json-schema-validation
 */
export const schemaKeywords: ReadonlyMap<string, KeywordShape> = new Map<string, KeywordShape>([
  ["$ref", "reference"],
  ["$defs", "schema_map"],
  ["definitions", "schema_map"],
  ["type", "types"],
  ["enum", "values"],
  ["const", "value"],
  ["title", "text"],
  ["description", "text"],
  ["default", "value"],
  ["examples", "values"],
  ["format", "text"],
  ["pattern", "text"],
  ["minLength", "count"],
  ["maxLength", "count"],
  ["minimum", "number"],
  ["maximum", "number"],
  ["exclusiveMinimum", "number"],
  ["exclusiveMaximum", "number"],
  ["multipleOf", "number"],
  ["properties", "schema_map"],
  ["required", "texts"],
  ["additionalProperties", "schema"],
  ["patternProperties", "schema_map"],
  ["propertyNames", "schema"],
  ["minProperties", "count"],
  ["maxProperties", "count"],
  ["dependentRequired", "text_lists"],
  ["dependentSchemas", "schema_map"],
  ["unevaluatedProperties", "schema"],
  ["items", "schema"],
  ["prefixItems", "schemas"],
  ["contains", "schema"],
  ["minContains", "count"],
  ["maxContains", "count"],
  ["minItems", "count"],
  ["maxItems", "count"],
  ["uniqueItems", "flag"],
  ["unevaluatedItems", "schema"],
  ["allOf", "schemas"],
  ["anyOf", "schemas"],
  ["oneOf", "schemas"],
  ["not", "schema"],
  ["if", "schema"],
  ["then", "schema"],
  ["else", "schema"],
]);

export const schemaTypes = ["null", "boolean", "object", "array", "number", "integer", "string"] as const;

/** The keywords whose values contain no schemas, even if they look like some. */
const valueKeywords: ReadonlySet<string> = new Set(["const", "enum", "default", "examples"]);

export type JsonObject = { readonly [name: string]: unknown };

/** A schema with all possible targets of its references. */
export interface SchemaDocument {
  readonly root: unknown;
  /** Whether a schema has `unevaluatedProperties` or `unevaluatedItems`. */
  readonly hasUnevaluated: boolean;
  /** Returns the target of a reference; undefined if the document does not hold it. */
  find(reference: string): unknown;
}

/** Returns an own property of an object, so never an inherited one such as `constructor`. */
export function own(object: JsonObject, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** Collects the places of `$id` and `$anchor`. Without recursion, since schemas can be nested to any depth. */
export function createSchemaDocument(root: unknown): SchemaDocument {
  const anchors = new Map<string, unknown>();
  let hasUnevaluated = false;
  const seen = new Set<unknown>();
  const pending: unknown[] = [root];
  for (let at = pending.pop(); at !== undefined; at = pending.pop()) {
    if (typeof at !== "object" || at === null || seen.has(at)) continue;
    seen.add(at);
    for (const [name, value] of Object.entries(at)) {
      if (name.startsWith("unevaluated")) hasUnevaluated = true;
      if (typeof value === "string") {
        if (name === "$anchor" || name === "$dynamicAnchor") anchors.set(`#${value}`, at);
        if (name === "$id") anchors.set(value.replace(/#$/, ""), at);
      } else if (!valueKeywords.has(name) && value !== undefined) pending.push(value);
    }
  }
  const known = new Map<string, unknown>();
  const find = (reference: string): unknown => {
    const hash = reference.indexOf("#");
    const base = hash === -1 ? reference : reference.slice(0, hash);
    const fragment = hash === -1 ? "" : reference.slice(hash + 1);
    const start = base === "" ? root : anchors.get(base);
    if (fragment === "") return start;
    return fragment.startsWith("/") ? follow(start, fragment) : anchors.get(`#${fragment}`);
  };
  return {
    root,
    hasUnevaluated,
    find(reference) {
      if (!known.has(reference)) known.set(reference, find(reference));
      return known.get(reference);
    },
  };
}

function follow(start: unknown, pointer: string): unknown {
  let at = start;
  for (const token of pointer.slice(1).split("/")) {
    const name = percentDecoded(token).replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof at !== "object" || at === null) return undefined;
    at = own(at as JsonObject, name);
  }
  return at;
}
