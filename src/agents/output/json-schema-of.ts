import { KitError } from "../../base/kit-error.ts";
import { isStandardSchema, type StandardSchemaV1 } from "../../base/standard-schema.ts";
import type { JsonSchema } from "../tool.ts";

/**
 * The JSON Schema of a schema: itself, or what its library says by Standard JSON Schema. Undefined
 * where the library offers none: the value is still validated, the model only is not told its shape.
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
 * The JSON Schema of a tool's arguments: an object, as every provider demands. Throws `invalid_request` for
 * a schema that has none: the model could not know what to call the tool with.
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
