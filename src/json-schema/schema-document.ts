import { percentDecoded } from "../base/percent.ts";

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
  /**
   * Returns the target of a reference in one of the document's schemas; undefined if the document does not hold it. The
   * anchor of a `$dynamicRef` can be in any schema of the document.
   */
  find(reference: string, from: object, keyword?: "$ref" | "$dynamicRef"): unknown;
}

/** Returns an own property of an object, so never an inherited one such as `constructor`. */
export function own(object: JsonObject, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** The base of a document without an absolute `$id`. */
const noBase = "kit:/";

/**
 * Collects the places of `$id` and `$anchor`. Without recursion, since schemas can be nested to any depth. A schema with an
 * `$id` is a resource of its own, whose references are relative to it; a reference without a target there is one of the
 * whole document, as many tools write it.
 */
export function createSchemaDocument(root: unknown): SchemaDocument {
  const resources = new Map<string, unknown>();
  const anchors = new Map<string, unknown>();
  const bases = new Map<unknown, string>();
  let hasUnevaluated = false;
  const pending: { readonly at: unknown; readonly outer: string }[] = [{ at: root, outer: noBase }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { at, outer } = next;
    if (typeof at !== "object" || at === null || bases.has(at)) continue;
    const base = baseOf(at as JsonObject, outer);
    bases.set(at, base);
    if (!resources.has(base)) resources.set(base, at);
    for (const [name, value] of Object.entries(at)) {
      if (name.startsWith("unevaluated")) hasUnevaluated = true;
      if (typeof value !== "string") {
        if (!valueKeywords.has(name)) pending.push({ at: value, outer: base });
      } else if (name === "$anchor" || name === "$dynamicAnchor") addAnchor(`#${value}`, base, at);
      else if (name === "$id" && value.startsWith("#")) addAnchor(value, base, at);
    }
  }
  function addAnchor(anchor: string, base: string, at: unknown): void {
    anchors.set(base + anchor, at);
    anchors.set(anchor, at);
  }
  const rootBase = bases.get(root) ?? noBase;
  const findIn = (base: string, reference: string): unknown => {
    const [address = "", ...rest] = reference.split("#");
    const fragment = rest.join("#");
    const resource = address === "" ? base : resolved(address, base);
    const start = resources.get(resource);
    if (fragment === "") return start;
    return fragment.startsWith("/") ? follow(start, fragment) : anchors.get(`${resource}#${fragment}`);
  };
  const known = new Map<string, unknown>();
  return {
    root,
    hasUnevaluated,
    find(reference, from, keyword = "$ref") {
      if (keyword === "$dynamicRef" && anchors.has(reference)) return anchors.get(reference);
      const base = bases.get(from) ?? rootBase;
      const key = base === rootBase ? reference : `${base} ${reference}`;
      if (!known.has(key))
        known.set(key, findIn(base, reference) ?? findIn(rootBase, reference) ?? anchors.get(reference));
      return known.get(key);
    },
  };
}

/** The base of a schema for its references and the ids in it. */
function baseOf(schema: JsonObject, outer: string): string {
  const id = own(schema, "$id");
  return typeof id === "string" && !id.startsWith("#") ? resolved(id.replace(/#.*$/s, ""), outer) : outer;
}

/** Nested ids that are relative to each other would otherwise grow with the square of their number. */
const maxAddress = 500;

function resolved(address: string, base: string): string {
  const href = URL.parse(address, base)?.href;
  return href === undefined || href.length > maxAddress ? address : href;
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
