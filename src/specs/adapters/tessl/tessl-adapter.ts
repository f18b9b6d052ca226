import type { ParsedSpecs, SpecAdapter, SpecSource } from "../../adapter.ts";
import { readFrontMatter } from "../../markdown/front-matter.ts";
import { frontMatterDiagnostics, frontMatterText } from "../../markdown/front-matter-diagnostics.ts";
import { lineText, type MarkdownScan, scanMarkdown } from "../../markdown/scan-markdown.ts";
import { unclosedDiagnostics } from "../../markdown/unclosed-diagnostics.ts";
import { annotationsIn } from "./annotations.ts";
import { capabilityBlocks } from "./capability-blocks.ts";
import { writeTessl } from "./write-tessl.ts";

const sources = /\.spec\.md$|(?:^|\/)\.tessl\/(?:.*\/)?[^/]+\.md$/s;

/**
 * Tessl: `*.spec.md` and the Markdown files below `.tessl/`, versions 1 and 2.
 *
 * Each described capability is a requirement: a heading below `## Capabilities`, or a second-level
 * section where there is none. What the file generates or describes is the code of all of them, a
 * test belongs to the capability that names it. Introduction, API and other sections are designs.
 *
 * The extension proves nothing, because browser tests and documentation use it, too: a file without
 * an annotation and without `targets` in its front matter is not Tessl's and is passed over.
 */
export const tesslAdapter: SpecAdapter = {
  name: "tessl",
  framework: "fw_e",
  matches: (path) => path.endsWith(".md") && sources.test(path),
  parse,
  write: writeTessl,
};

function parse({ path, text }: SpecSource): ParsedSpecs {
  const scan = scanMarkdown(text);
  const { data, raw, problems } = readFrontMatter(scan);
  const targets = targetsOf(data.targets);
  const annotations = annotationsIn(scan, scan.bodyLine, scan.lineCount);
  const isTessl =
    targets.length > 0 || annotations.some(({ kind }) => kind !== "doc") || describesApi(scan, path);
  if (!isTessl) return { drafts: [], diagnostics: [] };
  const drafts = capabilityBlocks(scan, {
    path,
    targets,
    annotations,
    frontMatter: frontMatterText(raw),
    name: typeof data.name === "string" ? data.name.trim() : "",
  });
  return {
    drafts,
    diagnostics: [...frontMatterDiagnostics(path, problems), ...unclosedDiagnostics(scan, path)],
  };
}

function targetsOf(value: unknown): string[] {
  const list = Array.isArray(value) ? value : [value];
  return list.filter((item) => typeof item === "string").filter((item) => item.trim() !== "");
}

/** In Tessl's own folder a fence marked `{ .api }` is enough: specs of packages generate nothing. */
function describesApi(scan: MarkdownScan, path: string): boolean {
  if (!/(?:^|\/)\.tessl\//.test(path) || !scan.text.includes(".api")) return false;
  for (let line = scan.bodyLine; line <= scan.lineCount; line += 1) {
    if (/^[ \t]*(?:```|~~~)[^`]*\{[ \t]*\.api[ \t]*\}/.test(lineText(scan, line))) return true;
  }
  return false;
}
