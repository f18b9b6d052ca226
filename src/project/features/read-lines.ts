import { KitError } from "../../base/kit-error.ts";
import { isSecretName } from "../../base/names.ts";
import type { FileLines, FileLinesQuery } from "../../protocol/project-file.ts";
import type { Project } from "../project.ts";
import { decodeText } from "../scan/source-reader.ts";
import { readPlacedFile } from "./write-file.ts";

/** Larger files are no sources that a person reads. */
const maxBytes = 4 * 1024 * 1024;
const mostLines = 2_000;
/** In characters; what is left of a longer line is cut. */
const longestLine = 4_000;
/** The longest text of one reply, in characters. */
const mostText = 256 * 1024;

/**
 * Lines of a file of the project, for readers that look at the source of a spec or a guideline. Returns lines only of files that
 * Git would track: ignored files, kit's own folder, links out of the project and files with keys or variables (`.env`) are
 * `not_found`, whether they exist or not. Throws `payload_too_large` for a file above 4 MiB, and `invalid_request` for a file
 * that is not text or has no such line.
 */
export async function readLines(
  project: Pick<Project, "root" | "files" | "realPath">,
  { path: requestedPath, start_line = 1, end_line = start_line + mostLines - 1 }: FileLinesQuery,
): Promise<FileLines> {
  const path = project.realPath(requestedPath.replace(/^(?:\.\/)+/, ""));
  if (end_line < start_line) throw wrongLine("end_line", `must not be before start_line, ${start_line}`);
  if (!isShown(requestedPath) || !isShown(path) || !hasFile(project.files(), path)) throw noSuchFile();
  const read = await readPlacedFile(project.root, { path, maxBytes }).catch((error: unknown) => {
    // A file that was exchanged for a link out, or for a folder, since the project was indexed.
    if (error instanceof KitError && error.code !== "payload_too_large") throw noSuchFile();
    throw error;
  });
  // Another process may also have replaced a link in the middle of the path.
  if (read === undefined || !isShown(read.path)) throw noSuchFile();
  const { text, diagnostics } = decodeText(read.bytes, path);
  if (diagnostics.some(({ code }) => code === "nul")) throw wrongLine("path", "is not a text file");
  const all = text.split(/\r\n|\n|\r/);
  if (all.at(-1) === "") all.pop();
  if (start_line > Math.max(1, all.length))
    throw wrongLine("start_line", `is after the last line, ${all.length}`);
  return { path: read.path, start_line, total_lines: all.length, ...takeLines(all, start_line, end_line) };
}

function takeLines(all: readonly string[], from: number, to: number): Pick<FileLines, "lines" | "cut"> {
  const lines: string[] = [];
  let remaining = mostText;
  let isCut = false;
  for (const fullLine of all.slice(from - 1, Math.min(to, from - 1 + mostLines))) {
    const line = fullLine.slice(0, longestLine).toWellFormed();
    remaining -= line.length + 1;
    if (remaining < 0 && lines.length > 0) break;
    isCut ||= fullLine.length > longestLine;
    lines.push(line);
  }
  return isCut ? { lines, cut: true } : { lines };
}

function isShown(path: string): boolean {
  const folded = path.normalize("NFKC").replace(/\p{Default_Ignorable_Code_Point}/gu, "");
  return !isSecretName(folded) && !/(?:^|\/)\.(?:kit|git)(?:\/|$)/i.test(folded);
}

/** The list is sorted by code units, and can have a hundred thousand names. */
function hasFile(files: readonly string[], path: string): boolean {
  let low = 0;
  let high = files.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const found = files[middle] ?? "";
    if (found === path) return true;
    if (found < path) low = middle + 1;
    else high = middle - 1;
  }
  return false;
}

function noSuchFile(): KitError {
  return new KitError({
    code: "not_found",
    message: "The project has no such file, or it is not shown.",
    hint: "Files that Git ignores, and files with keys or variables, are not shown.",
  });
}

function wrongLine(field: string, message: string): KitError {
  return new KitError({
    code: "invalid_request",
    message: "The query is not valid.",
    meta: { issues: [{ path: field, message }] },
  });
}
