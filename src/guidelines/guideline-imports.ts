import { codeSpans } from "../specs/markdown/characters.ts";
import { lineKinds, lineText, type MarkdownScan } from "../specs/markdown/scan-markdown.ts";
import type { GuidelineDraft } from "./adapter.ts";

type Import = GuidelineDraft["imports"][number];
/** `@docs/rules.md` (Claude Code, Cursor, Gemini CLI) or `#[[file:docs/rules.md]]` (Kiro). */
export type ImportSyntax = "at" | "file-reference" | "none";

/** An import longer than this is not a path. */
const maxImportLength = 512;
// An import comes after white space, an opening parenthesis or emphasis only: the `@` of an address (`a@b.org`) or of a link's
// text (`[@x/y](mdc:p)`) is not an import. A space inside a path is escaped.
const atImport = /(?<=^|[\s(]|[\s(][*_]{1,3}|^[*_]{1,3})@((?:[^\s\\`]|\\ ){1,512})/gu;
const fileReference = /#\[\[file:([^\]\n]{1,512})\]\]/g;
/** Lines that start a block: a backtick in the block before them does not close in them. */
const blockStart = /^\s*(?:[-*+]\s|\d+[.)]\s|#{1,6}\s|>|\|)/;

/** The imports that lines `from` to `to` (1-based, inclusive) name outside code, in order. */
export function importsIn(
  scan: MarkdownScan,
  syntax: ImportSyntax,
  lines: { readonly from: number; readonly to: number },
): Import[] {
  const mark = syntax === "at" ? "@" : "#[[file:";
  if (syntax === "none" || !scan.text.includes(mark)) return [];
  const imports: Import[] = [];
  const take = (from: number, paragraph: readonly string[]): void => {
    if (!paragraph.some((line) => line.includes(mark))) return;
    for (const [index, line] of withoutCode(paragraph.join("\n")).split("\n").entries()) {
      for (const match of line.matchAll(syntax === "at" ? atImport : fileReference)) {
        const path = syntax === "at" ? importPath(match[1] ?? "") : (match[1] ?? "").trim();
        const isImport = syntax === "at" ? namesFile(path) : path !== "";
        if (isImport && path.length <= maxImportLength) imports.push({ path, line: from + index });
      }
    }
  };
  let paragraph: string[] = [];
  for (let line = lines.from; line <= lines.to; line += 1) {
    const kind = scan.kinds[line - 1];
    const text = lineText(scan, line);
    const isText = (kind === lineKinds.prose || kind === lineKinds.html) && text.trim() !== "";
    if (!isText || blockStart.test(text)) {
      take(line - paragraph.length, paragraph);
      paragraph = [];
    }
    if (isText) paragraph.push(text);
  }
  take(lines.to + 1 - paragraph.length, paragraph);
  return imports;
}

/** Whether a content consists only of imports (`@AGENTS.md`), optionally as a list. */
export function isOnlyImports(content: string): boolean {
  // Few texts begin with an import, and a project has thousands.
  if (!/^\s*(?:[-*+]\s+)?@/.test(content)) return false;
  const lines = content.split(/\r\n?|\n/).filter((line) => line.trim() !== "");
  return (
    lines.length > 0 &&
    lines.every(
      (line) =>
        /^\s*(?:[-*+]\s+)?@(?:[^\s\\]|\\ )+\s*$/.test(line) &&
        namesFile(
          importPath(
            line
              .trim()
              .replace(/^[-*+]\s+/, "")
              .slice(1),
          ),
        ),
    )
  );
}

/** Replaces code spans by blanks, so that lines and columns stay the same. */
function withoutCode(text: string): string {
  let result = "";
  let at = 0;
  for (const span of codeSpans(text)) {
    result += text.slice(at, span.from) + text.slice(span.from, span.to).replace(/[^\n]/g, " ");
    at = span.to;
  }
  return result + text.slice(at);
}

/** The path without an anchor and without the punctuation of the sentence around it. */
function importPath(written: string): string {
  const path = (written.split("#", 1)[0] ?? "").replaceAll("\\ ", " ");
  let end = path.length;
  while (end > 0 && ".,;:!?)]}'\"*_>".includes(path[end - 1] ?? "")) end -= 1;
  return path.slice(0, end).trim();
}

/** Text files that Claude Code and Gemini CLI import; `@example.com` and `@types/node` name no file. */
const textExtension = new RegExp(
  `\\.(?:${
    "adoc astro bash c cc cfg cjs conf cpp cs css csv cts cxx dart env ex exs fish go graphql gradle h hpp hs htm html " +
    "ini java js json json5 jsonc jsx kt kts less lock log lua m markdown md mdc mdx mjs mts php pl properties proto ps1 " +
    "py pyi r rb rs rst sass scala scss sh sql svelte swift tex text tf toml ts tsx txt vue xml yaml yml zig zsh"
  })$`.replaceAll(" ", "|"),
  "iu",
);
const knownName =
  /(?:^|\/)(?:AUTHORS|CHANGELOG|CODEOWNERS|CONTRIBUTING|Dockerfile|Gemfile|Justfile|LICENSE|Makefile|NOTICE|Procfile|README)$/u;

/**
 * Whether a text after an `@` names a file: it starts like a path (`./x`, `../x`, `~/x`, `/x`), or ends like a text file. A name
 * (`@alice`), a decorator (`@Injectable()`, `@app.get("/x.json")`), a package (`@types/node`, `@x/y@1.2.0`) and a tag (`@param`)
 * name no file.
 */
function namesFile(path: string): boolean {
  if (path === "" || /[<>"'|{}=;]|\w\(|@/u.test(path)) return false;
  if (/^(?:\.{1,2}|~)?\//u.test(path)) return /[^./~]/u.test(path);
  return /^[\p{L}\p{N}_.([]/u.test(path) && (textExtension.test(path) || knownName.test(path));
}
