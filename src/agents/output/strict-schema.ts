import type { JsonSchema } from "../tool.ts";

/** Keywords that providers enforce while the model writes; with any other, they refuse strict mode. */
const strictKeywords = new Set([
  "$defs",
  "$ref",
  "additionalProperties",
  "anyOf",
  "const",
  "definitions",
  "description",
  "enum",
  "items",
  "properties",
  "required",
  "title",
  "type",
]);

/** Deeper schemas are not taken apart; what is nested like that is no result anybody reads. */
const maxDepth = 64;

/**
 * The schema in the form that providers enforce: every object names all its properties as required and
 * allows no others. Undefined where that would change what the schema means: optional properties, free
 * keys, keywords beyond the common ones.
 *
 * @see https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
 */
export function toStrictSchema(schema: JsonSchema): JsonSchema | undefined {
  return strict(schema, 0);
}

function strict(schema: unknown, depth: number): JsonSchema | undefined {
  if (!isTable(schema) || depth > maxDepth) return undefined;
  const result: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(schema)) {
    // Which draft it is written in says nothing about the value.
    if (keyword === "$schema") continue;
    if (!strictKeywords.has(keyword)) return undefined;
    const read = readKeyword(keyword, value, depth);
    if (read === undefined) return undefined;
    result[keyword] = read;
  }
  if (schema.type !== "object") return result;
  const { properties, required } = schema;
  if (!isTable(properties) || !Array.isArray(required)) return undefined;
  if (!Object.keys(properties).every((name) => required.includes(name))) return undefined;
  return { ...result, additionalProperties: false };
}

function readKeyword(keyword: string, value: unknown, depth: number): unknown {
  switch (keyword) {
    case "additionalProperties":
      return value === false ? false : undefined;
    case "items":
      return strict(value, depth + 1);
    case "anyOf": {
      const options = Array.isArray(value) ? value.map((option) => strict(option, depth + 1)) : [undefined];
      return options.includes(undefined) ? undefined : options;
    }
    case "properties":
    case "$defs":
    case "definitions": {
      if (!isTable(value)) return undefined;
      const entries = Object.entries(value).map(([name, each]) => [name, strict(each, depth + 1)] as const);
      return entries.some(([, each]) => each === undefined) ? undefined : Object.fromEntries(entries);
    }
    default:
      return value;
  }
}

function isTable(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
