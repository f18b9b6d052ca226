import type { ApprovalRequest } from "../../protocol/approval.ts";
import { findChangedFile, previewChange } from "../../protocol/call-change.ts";
import type { FileLines } from "../../protocol/project-file.ts";
import { safeLine, safeLines, toSafeJson } from "../text/safe-text.ts";
import { lineDiff } from "./line-diff.ts";
import type { Output } from "./output.ts";

/** Returns the present text of a file of the project; `undefined` if it cannot be shown, or is not there. */
export type ReadProjectFile = (path: string) => Promise<string | undefined>;

/** Reads files of a project through the function that returns their lines, from this machine or a server. */
export function createFileReader(readLines: (path: string) => Promise<FileLines>): ReadProjectFile {
  return async (path) => {
    try {
      const { lines, total_lines, cut } = await readLines(path);
      const isWhole = lines.length === total_lines && cut === undefined;
      return isWhole ? lines.map((line) => `${line}\n`).join("") : undefined;
    } catch {
      return undefined;
    }
  };
}

interface PrintedCall {
  readonly output: Pick<Output, "note" | "noteStyle">;
  /** Masks keys in the printed text. */
  readonly mask: (text: string) => string;
  readonly readFile: ReadProjectFile;
}

/**
 * Prints a call that waits for a decision: for `write` and `edit` the change to the present file, for other calls all arguments,
 * whatever their length. A person cannot approve what they do not see.
 */
export async function printWaitingCall(
  {
    tool,
    args,
    changes,
    kind,
    message = "",
    schema,
  }: Pick<ApprovalRequest, "tool" | "args" | "changes" | "kind" | "message" | "schema">,
  { output, mask, readFile }: PrintedCall,
): Promise<void> {
  if (kind === "question") {
    const question = mask(safeLines(message));
    output.note(output.noteStyle("yellow", `${safeLine(tool)} asks: ${question}`));
    output.note(`The answer has this schema: ${mask(toSafeJson(schema))}`);
    return;
  }
  const changed = findChangedFile(tool, args) === undefined ? undefined : changes;
  // Ignored files and files with keys are as little shown as missing ones: only the record knows that a file is new.
  const present = changed?.in_project === true ? await readFile(changed.path) : changed?.before;
  const before = present ?? (changed?.is_new === true ? "" : undefined);
  const change = before === undefined ? undefined : previewChange({ tool, args }, before);
  if (changed === undefined || change === undefined) {
    output.note(output.noteStyle("yellow", `${safeLine(tool)} wants to run with ${mask(toSafeJson(args))}`));
    if (changed !== undefined && before === undefined)
      output.note(output.noteStyle("yellow", `The present ${safeLine(changed.path)} cannot be shown.`));
    return;
  }
  const newness = changed.is_new === true && before === "" ? " (a new file)" : "";
  output.note(
    output.noteStyle("yellow", `${safeLine(tool)} wants to change ${safeLine(changed.path)}${newness}`),
  );
  for (const line of lineDiff(change.before, change.after)) {
    const style = line.startsWith("+") ? "green" : line.startsWith("-") ? "red" : "dim";
    // White space is significant in a diff.
    output.note(output.noteStyle(style, mask(safeLines(line).replaceAll("\n", " "))));
  }
}
