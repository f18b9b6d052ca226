import type { ApprovalRequest } from "../../protocol/approval.ts";
import { findChangedFile } from "../../protocol/call-change.ts";
import type { Sandbox } from "../../sandboxes/contract.ts";

/** The longest text of a file in the record of a call, in characters. */
const maxChars = 50_000;

/**
 * Returns the file that a waiting call of `write` or `edit` would change, so that the approver sees what it replaces. Approvers can
 * read the files of the project themselves; the text of a file in a session's own workspace is part of the record.
 */
export async function readChangedFile(
  call: { readonly tool: string; readonly args?: unknown },
  {
    sandbox,
    projectRoot,
    mask,
  }: {
    readonly sandbox: () => Promise<Sandbox>;
    readonly projectRoot: string | undefined;
    readonly mask: (text: string) => string;
  },
): Promise<ApprovalRequest["changes"]> {
  const path = findChangedFile(call.tool, call.args);
  if (path === undefined) return undefined;
  const files = await sandbox();
  const target = await files.resolve(path);
  const isNew = !(await files.exists(path));
  const found = isNew ? ({ is_new: true } as const) : {};
  const place = `${files.hostRoot}/${target}`;
  if (files.hostRoot !== undefined && projectRoot !== undefined && place.startsWith(`${projectRoot}/`))
    return { path: place.slice(projectRoot.length + 1), in_project: true, ...found };
  const before = isNew ? "" : await files.readFile(path);
  return before.length > maxChars ? { path: target } : { path: target, before: mask(before), ...found };
}
