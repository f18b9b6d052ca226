import type { z } from "zod";
import { KitError } from "../../base/kit-error.ts";
import type { ErrorIssue } from "../../protocol/error-code.ts";

const maxIssues = 20;
const maxIssueText = 200;

/**
 * Checks an input against its schema and gives the typed value. Throws `invalid_request` whose
 * `meta.issues` name each fault as `<part>.<path>`, such as `body.format`.
 */
export function checkInput<Value>(part: "query" | "body", value: unknown, schema: z.ZodType<Value>): Value {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issues = result.error.issues.flatMap((issue) => toIssues(part, issue)).slice(0, maxIssues);
  throw new KitError({
    code: "invalid_request",
    message: `The ${part} is not valid.`,
    meta: { issues },
  });
}

function toIssues(part: string, issue: z.core.$ZodIssue): ErrorIssue[] {
  const path = [part, ...issue.path].map(String);
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => toIssue([...path, key], "is not known here"));
  }
  return [toIssue(path, issue.message)];
}

// A client may put a megabyte into a key; the reply need not say all of it again.
function toIssue(path: readonly string[], message: string): ErrorIssue {
  return { path: path.join(".").slice(0, maxIssueText), message: message.slice(0, maxIssueText) };
}
