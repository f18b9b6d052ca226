import type { StandardSchemaV1 } from "@standard-schema/spec";
import { KitError } from "./kit-error.ts";

/** Whether a value is a schema of zod, valibot, arktype or another library that implements Standard Schema. */
export function isStandardSchema(value: unknown): value is StandardSchemaV1 {
  return (typeof value === "object" || typeof value === "function") && value !== null && "~standard" in value;
}

/** Formats an issue as one line: `items.0.price: expected a number`. */
export function issueText(issue: StandardSchemaV1.Issue): string {
  const path = (issue.path ?? []).map((part) => String(typeof part === "object" ? part.key : part)).join(".");
  return path === "" ? issue.message : `${path}: ${issue.message}`;
}

/** Splits such a line: `{ path: "payload.items.0.price", message: "expected a number" }`. */
export function locateIssue(text: string, root: string): { readonly path: string; readonly message: string } {
  const [, path, message] = /^([^\s:]+): (.*)$/s.exec(text) ?? [];
  return path === undefined || message === undefined
    ? { path: root, message: text }
    : { path: `${root}.${path}`, message };
}

type JsonSchema = { readonly [keyword: string]: unknown };

type ValidateJson = (schema: JsonSchema, value: unknown) => readonly string[] | Promise<readonly string[]>;

export type SchemaCheck =
  | { readonly value: unknown; readonly issues?: undefined }
  | { readonly issues: readonly string[] };

/** Returns the value as the schema parsed it, or one issue for each error. */
export async function checkAgainst(
  schema: StandardSchemaV1 | JsonSchema,
  value: unknown,
  validateJson: ValidateJson,
): Promise<SchemaCheck> {
  if (!isStandardSchema(schema)) {
    const issues = await validateJson(schema, value);
    return issues.length === 0 ? { value } : { issues };
  }
  const result = await schema["~standard"].validate(value);
  return result.issues === undefined ? { value: result.value } : { issues: result.issues.map(issueText) };
}

/**
 * Returns the payload as its schema parsed it. Throws `invalid_request` with one issue for each error; `receiver`
 * names the receiver of the payload in the message: `the webhook "github"`.
 */
export async function checkPayload(
  schema: StandardSchemaV1 | JsonSchema | undefined,
  payload: unknown,
  { receiver, validateJson }: { readonly receiver: string; readonly validateJson: ValidateJson },
): Promise<unknown> {
  if (schema === undefined) return payload;
  const check = await checkAgainst(schema, payload, validateJson);
  if (check.issues === undefined) return check.value;
  throw new KitError({
    code: "invalid_request",
    message: `The payload is not what ${receiver} accepts.`,
    meta: { issues: check.issues.map((issue) => locateIssue(issue, "payload")) },
  });
}
