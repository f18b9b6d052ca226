import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { KitError } from "../../base/kit-error.ts";
import { isStandardSchema, type StandardSchemaV1 } from "../../base/standard-schema.ts";
import type { ResolvedModel } from "../../models/contract.ts";
import type { JsonSchema } from "../define/tool.ts";

type JsonFormat = Extract<LanguageModelV4CallOptions["responseFormat"], { type: "json" }>;

/** Call options that make the provider itself produce JSON of a schema. */
export type NativeOutput = Pick<LanguageModelV4CallOptions, "responseFormat" | "providerOptions">;

/**
 * The options that make the provider enforce a schema; undefined if it cannot, not together with tools, or not for
 * this schema: then the answer is text that contains JSON.
 */
export function nativeOutput(
  resolved: ResolvedModel,
  schema: JsonSchema | undefined,
  mayCall: boolean,
): NativeOutput | undefined {
  const { structuredOutput, looseSchemaOptions } = resolved;
  if (structuredOutput === "never" || (structuredOutput !== "always" && mayCall)) return undefined;
  // Every provider refuses a list or a plain value at the root.
  if (schema?.type !== "object") return undefined;
  const strict = toStrictSchema(schema);
  const format = (given: JsonSchema): JsonFormat => ({
    type: "json",
    name: "result",
    schema: given as NonNullable<JsonFormat["schema"]>,
  });
  if (strict !== undefined) return { responseFormat: format(strict) };
  return {
    responseFormat: format(schema),
    ...(looseSchemaOptions === undefined ? {} : { providerOptions: looseSchemaOptions }),
  };
}

/**
 * Whether the provider refused the call itself: an old model without structured output, an unknown keyword. The same
 * call without a format may succeed.
 */
export function isRefusal(error: unknown): boolean {
  if (!(error instanceof KitError) || error.code !== "model_error") return false;
  const { cause } = error;
  const status =
    typeof cause === "object" && cause !== null && "statusCode" in cause ? cause.statusCode : undefined;
  return status === 400 || status === 422;
}

/** Keywords that providers support in strict mode; they refuse any other. */
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

/** Deeper schemas are not converted. */
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
    // The draft does not affect the value.
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

/**
 * The JSON Schema of a schema: itself, or the Standard JSON Schema of its library. Undefined if the library offers
 * none: the value is still validated, but the model does not see its shape.
 */
export function jsonSchemaOf(schema: StandardSchemaV1 | JsonSchema): JsonSchema | undefined {
  if (!isStandardSchema(schema)) return schema;
  try {
    return schema["~standard"].jsonSchema?.input({ target: "draft-07" });
  } catch {
    // Some types (functions, transforms) have no JSON Schema.
    return undefined;
  }
}

/**
 * The JSON Schema of a tool's arguments: an object, as every provider requires. Throws `invalid_request` for a schema
 * without one: the model could not know the arguments.
 */
export function inputSchemaOf(name: string, schema: StandardSchemaV1 | JsonSchema): JsonSchema {
  const found = jsonSchemaOf(schema);
  if (found === undefined) {
    throw new KitError({
      code: "invalid_request",
      message: `The schema of the tool "${name}" does not say what it is as JSON Schema.`,
      hint: "Schemas of zod (from 4.2 on) and arktype do; wrap one of valibot with toStandardJsonSchema of @valibot/to-json-schema, or give a JSON Schema.",
    });
  }
  return found.type === undefined ? { type: "object", ...found } : found;
}
