import type { StandardSchemaV1 } from "@standard-schema/spec";

/** A schema of zod, valibot, … (Standard Schema), or a JSON Schema. */
export type WorkflowSchema<Input = unknown, Output = unknown> =
  | StandardSchemaV1<Input, Output>
  | { readonly [keyword: string]: unknown };
