import { isPlainObject, type SchemaObject } from "./normalize-schema.ts";
import { schemaKeywords } from "./schema-keywords.ts";

/** Where leaving a rule out below could make a valid value invalid. */
const strictKeywords: ReadonlySet<string> = new Set(["not", "if", "oneOf", "contains"]);

/** Rules that a stranger's schema could make run for ever, on values that the stranger suggests. */
const costlyKeywords: ReadonlySet<string> = new Set(["pattern", "patternProperties", "uniqueItems"]);

/**
 * A copy of a schema for the validator, without regular expressions, formats, and references that lead
 * back to themselves. What the copy refuses, the schema refuses; undefined where that cannot be had. The
 * server checks the rest.
 */
export function relaxSchema(schema: SchemaObject, endless: ReadonlySet<string>): SchemaObject | undefined {
  const text = JSON.stringify(schema);
  // Which properties are evaluated depends on the patterns, and on what a reference says.
  const isOpen = text.includes('"patternProperties"') || endless.size > 0;
  if (isOpen && /"unevaluated(?:Properties|Items)"/.test(text)) return undefined;
  const copy = relax(schema, { endless, strict: false });
  return isPlainObject(copy) ? copy : undefined;
}

interface Relaxing {
  readonly endless: ReadonlySet<string>;
  readonly strict: boolean;
}

function relax(schema: unknown, relaxing: Relaxing): unknown {
  if (!isPlainObject(schema)) return schema;
  const entries: [string, unknown][] = [];
  for (const [keyword, value] of Object.entries(schema)) {
    if (keyword === "format") continue;
    if (costlyKeywords.has(keyword) || (keyword === "$ref" && relaxing.endless.has(String(value)))) {
      if (relaxing.strict) return undefined;
      continue;
    }
    // Which properties are additional depends on the patterns.
    if (keyword === "additionalProperties" && "patternProperties" in schema) continue;
    const strict = relaxing.strict || strictKeywords.has(keyword);
    const copy = relaxValue(keyword, value, { ...relaxing, strict });
    if (copy === undefined) return undefined;
    entries.push([keyword, copy]);
  }
  return Object.fromEntries(entries);
}

function relaxValue(keyword: string, value: unknown, relaxing: Relaxing): unknown {
  const shape = schemaKeywords.get(keyword);
  if (shape === "schema") return relax(value, relaxing);
  if (shape === "schemas" && Array.isArray(value)) {
    const items = value.map((item) => relax(item, relaxing));
    return items.includes(undefined) ? undefined : items;
  }
  if (shape === "schema_map" && isPlainObject(value)) {
    const entries = Object.entries(value).map(([name, item]) => [name, relax(item, relaxing)] as const);
    return entries.some(([, item]) => item === undefined) ? undefined : Object.fromEntries(entries);
  }
  return value;
}
