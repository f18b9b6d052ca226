import type { ToolRunOptions } from "../../agents/turn/tool-calls.ts";
import { KitError } from "../../base/kit-error.ts";
import { isStandardSchema, issueText } from "../../base/standard-schema.ts";
import type { LoadedWorkflow } from "../sources/load-source.ts";

/** The payload as the workflow's schema gives it. Throws `invalid_request` with an issue for each thing wrong. */
export async function checkPayload(
  { name, payload: schema }: LoadedWorkflow,
  payload: unknown,
  validateJson: ToolRunOptions["validateJson"],
): Promise<unknown> {
  if (schema === undefined) return payload;
  if (!isStandardSchema(schema)) {
    const issues = await validateJson(schema, payload);
    if (issues.length === 0) return payload;
    throw refused(name, issues);
  }
  const result = await schema["~standard"].validate(payload);
  if (result.issues === undefined) return result.value;
  throw refused(name, result.issues.map(issueText));
}

function refused(name: string, issues: readonly string[]): KitError {
  return new KitError({
    code: "invalid_request",
    message: `The payload is not what the workflow "${name}" takes.`,
    meta: { issues: issues.map(toIssue) },
  });
}

/** `items.0.price: must be a number` says where before what; an issue keeps them apart. */
function toIssue(text: string): { readonly path: string; readonly message: string } {
  const [, path, message] = /^([^\s:]+): (.*)$/s.exec(text) ?? [];
  return path === undefined || message === undefined
    ? { path: "payload", message: text }
    : { path: `payload.${path}`, message };
}
