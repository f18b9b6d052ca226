import type { CheckOptions, checkJson, JsonIssue } from "../json-schema/check-json.ts";
import { createSchemaDocument, type SchemaDocument } from "../json-schema/schema-document.ts";

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
