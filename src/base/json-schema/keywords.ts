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
