import { codeSpans } from "../specs/markdown/code-spans.ts";
import { lineKinds, lineText, type MarkdownScan } from "../specs/markdown/scan-markdown.ts";
import type { GuidelineDraft } from "./adapter.ts";

type Import = GuidelineDraft["imports"][number];
/** `@docs/rules.md` (Claude Code, Cursor) or `#[[file:docs/rules.md]]` (Kiro). */
export type ImportSyntax = "at" | "file-reference" | "none";

/** An import longer than this is not a path. */
const maxImportLength = 512;
// An address (`someone@example.org`) has no space before its at sign.
const atImport = /(?<![^\s([])@(~?[\p{L}\p{N}_./-][^\s`]{0,511})/gu;
const fileReference = /#\[\[file:([^\]\n]{1,512})\]\]/g;

/** The imports that lines `from` to `to` (1-based, inclusive) name outside code, in order. */
export function importsIn(
  scan: MarkdownScan,
  syntax: ImportSyntax,
  lines: { readonly from: number; readonly to: number },
): Import[] {
  const mark = syntax === "at" ? "@" : "#[[file:";
  if (syntax === "none" || !scan.text.includes(mark)) return [];
  const imports: Import[] = [];
  for (let line = lines.from; line <= lines.to; line += 1) {
    const kind = scan.kinds[line - 1];
    if (kind !== lineKinds.prose && kind !== lineKinds.html) continue;
    const text = lineText(scan, line);
    if (!text.includes(mark)) continue;
    const outside = withoutCode(text);
    for (const match of outside.matchAll(syntax === "at" ? atImport : fileReference)) {
      const path = importPath(match[1] ?? "");
      if (path !== "" && path.length <= maxImportLength) imports.push({ path, line });
    }
  }
  return imports;
}

/** A line with its code spans blanked, so that columns stay. */
function withoutCode(line: string): string {
  let result = "";
  let at = 0;
  for (const span of codeSpans(line)) {
    result += line.slice(at, span.from) + " ".repeat(span.to - span.from);
    at = span.to;
  }
  return result + line.slice(at);
}

/** The path without an anchor and without the punctuation of the sentence around it. */
function importPath(written: string): string {
  const path = written.split("#", 1)[0] ?? "";
  let end = path.length;
  while (end > 0 && ".,;:!?)]}'\"*_>".includes(path[end - 1] ?? "")) end -= 1;
  return path.slice(0, end).trim();
}
