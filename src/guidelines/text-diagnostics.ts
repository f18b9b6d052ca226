import type { Diagnostic } from "../protocol/diagnostic.ts";
import { frontMatterDiagnostics } from "../specs/markdown/diagnostics.ts";
import type { FrontMatter } from "../specs/markdown/front-matter.ts";
import { maxTitleLength } from "../specs/markdown/heading-title.ts";
import type { MarkdownScan } from "../specs/markdown/scan-markdown.ts";

// Unicode 16, table 23-3: marks that change the order in which text is shown.
const bidirectional = /[\u202a-\u202e\u2066-\u2069]/g;

/** A heading as a title: without marks that reorder text, never empty. */
export function cleanTitle(title: string, fallback: string): string {
  const clean = title.replace(bidirectional, "").trim();
  return clean === "" ? fallback : clean;
}

/** A file name as a title: `python-style.md` is "Python style". */
export function titleOfFile(path: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1).replace(/(?:\.instructions)?\.[a-z]+$/i, "");
  const words = name
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a title
    .replace(/[-_\s\u0000-\u001f\u007f-\u009f]+/g, " ")
    .trim()
    .slice(0, maxTitleLength);
  return cleanTitle(words.charAt(0).toUpperCase() + words.slice(1), "Untitled");
}

/** Diagnostics of every guideline file: front matter, unclosed fences and comments, hidden characters. */
export function textDiagnostics(path: string, scan: MarkdownScan, frontMatter: FrontMatter): Diagnostic[] {
  const diagnostics = frontMatterDiagnostics(path, frontMatter.problems);
  const warn = (rule: Diagnostic["rule"], code: string, about: { message: string; line: number }): void => {
    diagnostics.push({ severity: "warning", rule, code, message: about.message, path, line: about.line });
  };
  if (scan.text.trim() === "") warn("structure", "empty_file", { message: "This file is empty.", line: 1 });
  for (const { kind, line } of scan.unclosed) {
    if (kind === "front_matter") continue;
    const message = `This ${kind === "fence" ? "code fence" : "comment"} is never closed, so the rest of the file belongs to it.`;
    warn("structure", `${kind}_unclosed`, { message, line });
  }
  const hidden = scan.text.search(bidirectional);
  if (hidden !== -1) {
    const message = "This line holds a mark that reorders text as it is shown; titles are kept without it.";
    warn("encoding", "bidi_control", { message, line: lineAt(scan, hidden) });
  }
  return diagnostics;
}

/** The 1-based line of an offset. */
function lineAt(scan: MarkdownScan, offset: number): number {
  let low = 0;
  let high = scan.lineCount;
  while (low + 1 < high) {
    const middle = (low + high) >> 1;
    if ((scan.starts[middle] ?? 0) <= offset) low = middle;
    else high = middle;
  }
  return low + 1;
}
