import type { CheckOptions, JsonIssue } from "../../json-schema/check-against-schema.ts";
import { createSchemaDocument, type SchemaDocument } from "../../json-schema/schema-document.ts";

const maxIssues = 20;

/**
 * Creates a validator of JSON Schema (2020-12, the draft that tools use). It interprets schemas, never generates code,
 * and takes bounded time, because schemas also come from untrusted repositories, requests and servers. It returns the
 * issues as short texts without a full stop: `items.0.price: must be number, not string`.
 */
export function createJsonValidator(
  options: CheckOptions = {},
): (
  schema: Readonly<Record<string, unknown>>,
  value: unknown,
) => readonly string[] | Promise<readonly string[]> {
  const documents = new WeakMap<object, SchemaDocument>();
  let checker: Checker | undefined;
  const issuesOf = (checkJson: Checker, schema: object, value: unknown): readonly string[] => {
    const document = documents.get(schema) ?? createSchemaDocument(schema);
    documents.set(schema, document);
    const issues = checkJson(document, value, options);
    return issues.length === 0 ? [] : [...new Set(issues.map(issueText))].slice(0, maxIssues);
  };
  return (schema, value) => {
    if (checker !== undefined) return issuesOf(checker, schema, value);
    return loadChecker().then((loaded) => {
      checker = loaded;
      return issuesOf(loaded, schema, value);
    });
  };
}

type Checker = Awaited<ReturnType<typeof loadChecker>>;

/** The checker is loaded when the first value is checked. */
async function loadChecker() {
  return (await import("../../json-schema/check-against-schema.ts")).checkJson;
}

function issueText({ path, message }: JsonIssue): string {
  return path.length === 0 ? message : `${path.join(".")}: ${message}`;
}
