import type { ToolRunOptions } from "../agents/turn/tool-calls.ts";
import { isStandardSchema, issueText, type StandardSchemaV1 } from "../base/standard-schema.ts";

/** A schema of zod, valibot, … (Standard Schema), or a JSON Schema. */
export type WorkflowSchema<Input = unknown, Output = unknown> =
  | StandardSchemaV1<Input, Output>
  | { readonly [keyword: string]: unknown };

export type SchemaCheck =
  | { readonly value: unknown; readonly issues?: undefined }
  | { readonly issues: readonly string[] };

/** The value as the schema gives it, or an issue for each thing wrong. */
export async function checkAgainst(
  schema: WorkflowSchema,
  value: unknown,
  validateJson: ToolRunOptions["validateJson"],
): Promise<SchemaCheck> {
  if (!isStandardSchema(schema)) {
    const issues = await validateJson(schema, value);
    return issues.length === 0 ? { value } : { issues };
  }
  const result = await schema["~standard"].validate(value);
  return result.issues === undefined ? { value: result.value } : { issues: result.issues.map(issueText) };
}
