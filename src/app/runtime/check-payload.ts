import type { ToolRunOptions } from "../../agents/turn/tool-calls.ts";
import { KitError } from "../../base/kit-error.ts";
import { checkAgainst, locateIssue } from "../../base/standard-schema.ts";
import type { CheckOptions, checkJson, JsonIssue } from "../json-schema/check-json.ts";
import { createSchemaDocument, type SchemaDocument } from "../json-schema/schema-document.ts";
import type { LoadedWorkflow } from "../sources/discover-sources.ts";

type ValidateJson = ToolRunOptions["validateJson"];

/** The payload as the workflow's schema gives it. Throws `invalid_request` with an issue for each thing wrong. */
export async function checkPayload(
  { name, payload: schema }: LoadedWorkflow,
  payload: unknown,
  validateJson: ValidateJson,
): Promise<unknown> {
  if (schema === undefined) return payload;
  const check = await checkAgainst(schema, payload, validateJson);
  if (check.issues === undefined) return check.value;
  throw new KitError({
    code: "invalid_request",
    message: `The payload is not what the workflow "${name}" takes.`,
    meta: { issues: check.issues.map((issue) => locateIssue(issue, "payload")) },
  });
}

/** The result as the workflow's schema gives it. Throws `internal_error`: the workflow's code is wrong, not its caller. */
export async function checkResult(
  { name, result: schema }: LoadedWorkflow,
  result: unknown,
  validateJson: ValidateJson,
): Promise<unknown> {
  if (schema === undefined) return result;
  const check = await checkAgainst(schema, result, validateJson);
  if (check.issues === undefined) return check.value;
  throw new KitError({
    code: "internal_error",
    message: `The result of the workflow "${name}" does not fit its schema: ${check.issues.join("; ")}.`,
    hint: "Return what `result` describes, or change the schema.",
    meta: { issues: check.issues.map((issue) => locateIssue(issue, "result")) },
  });
}

const maxIssues = 20;

/**
 * Creates a validator of JSON Schema (2020-12, the draft that tools use). It interprets schemas, never
 * generates code and takes bounded time, because schemas also come from strangers: repositories, requests,
 * servers. Issues are short texts without a full stop, fit for a model and for a person:
 * `items.0.price: must be number, not string`.
 */
export function createJsonValidator(
  options: CheckOptions = {},
): (
  schema: Readonly<Record<string, unknown>>,
  value: unknown,
) => readonly string[] | Promise<readonly string[]> {
  const documents = new WeakMap<object, SchemaDocument>();
  let check: typeof checkJson | undefined;
  const issuesOf = (schema: object, value: unknown): readonly string[] => {
    const document = documents.get(schema) ?? createSchemaDocument(schema);
    documents.set(schema, document);
    const issues = check?.(document, value, options) ?? [];
    return issues.length === 0 ? [] : [...new Set(issues.map(issueText))].slice(0, maxIssues);
  };
  return (schema, value) => {
    if (check !== undefined) return issuesOf(schema, value);
    return import("../json-schema/check-json.ts").then((module) => {
      check = module.checkJson;
      return issuesOf(schema, value);
    });
  };
}

function issueText({ path, message }: JsonIssue): string {
  return path.length === 0 ? message : `${path.join(".")}: ${message}`;
}
