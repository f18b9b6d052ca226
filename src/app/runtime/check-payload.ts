import type { ToolRunOptions } from "../../agents/turn/tool-calls.ts";
import { KitError } from "../../base/kit-error.ts";
import { checkAgainst } from "../../workflows/workflow-schema.ts";
import type { LoadedWorkflow } from "../sources/load-source.ts";

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
    meta: { issues: check.issues.map((issue) => toIssue(issue, "payload")) },
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
    meta: { issues: check.issues.map((issue) => toIssue(issue, "result")) },
  });
}

/** `items.0.price: must be a number` says where before what; an issue keeps them apart. */
function toIssue(text: string, root: string): { readonly path: string; readonly message: string } {
  const [, path, message] = /^([^\s:]+): (.*)$/s.exec(text) ?? [];
  return path === undefined || message === undefined
    ? { path: root, message: text }
    : { path: `${root}.${path}`, message };
}
