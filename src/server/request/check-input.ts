import type { z } from "zod";
import { KitError } from "../../base/kit-error.ts";
import type { ErrorIssue } from "../../protocol/errors.ts";

const maxIssues = 20;
const maxIssueText = 200;

/**
 * Checks an input against its schema and gives the typed value. Throws `invalid_request` whose
 * `meta.issues` name each fault as `<part>.<path>`, such as `body.format`.
 */
export function checkInput<Value>(
  part: "query" | "body" | "frame",
  value: unknown,
  schema: z.ZodType<Value>,
): Value {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issues = result.error.issues.flatMap((issue) => toIssues(part, issue)).slice(0, maxIssues);
  throw new KitError({
    code: "invalid_request",
    message: `The ${part} is not valid.`,
    meta: { issues },
  });
}

/**
 * An error of the project about a field of its input, told as one about this part of the request: the
 * project does not know that `cursor` came as `query.cursor`. Other errors stay as they are.
 */
export function locateIssues(error: unknown, part: "query" | "body"): unknown {
  if (!(error instanceof KitError) || !Array.isArray(error.meta?.issues)) return error;
  const issues = error.meta.issues.map(({ path, message }: ErrorIssue) => ({
    path: /^(?:query|body|path|headers|frame)\./.test(path) ? path : `${part}.${path}`,
    message,
  }));
  const { code, message, hint, cause } = error;
  const init = { code, message, meta: { ...error.meta, issues }, cause };
  return new KitError(hint === undefined ? init : { ...init, hint });
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
