import type { SpecBlock } from "../../../protocol/spec-block.ts";
import type { ParsedSpecs, SpecAdapter, SpecSource, WrittenSpecs } from "../../adapter.ts";
import { blocksByPath, toWritableSegment, withFrontMatter } from "../../export/blocks-by-path.ts";
import { frontMatterDiagnostics, frontMatterText, unclosedDiagnostics } from "../../markdown/diagnostics.ts";
import { readFrontMatter } from "../../markdown/front-matter.ts";
import { lineText, type MarkdownScan, scanMarkdown } from "../../markdown/scan-markdown.ts";
import { type WritableSegment, writeSegments } from "../../markdown/write-segments.ts";
import { annotationsIn } from "./annotations.ts";
import { capabilityBlocks } from "./capability-blocks.ts";

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

/** Renders each file of the blocks, with its front matter and its targets. */
function writeTessl(blocks: readonly SpecBlock[]): WrittenSpecs {
  const files = blocksByPath(blocks).map(({ path, blocks: own }) => ({
    path,
    content: withFrontMatter(own[0]?.metadata.frontmatter, writeSegments(segmentsOfFile(own))),
  }));
  return { files, losses: [] };
}

/** The targets stand behind the introduction, in a section of their own. */
function segmentsOfFile(blocks: readonly SpecBlock[]): WritableSegment[] {
  const segments = blocks.map((block) => ({ ...toWritableSegment(block), body: bodyOf(block) }));
  const annotations = blocks[0]?.metadata.annotations;
  if (!Array.isArray(annotations)) return segments;
  const at = segments.findIndex(({ level }) => level > 1);
  const next = segments[at];
  const above = next === undefined ? titleOf(segments) : next.parents.filter(({ level }) => level === 1);
  // Text directly below the title, or before it, must not end up below the targets.
  const level = next === undefined || next.level === 2 || next.parents.at(-1)?.level === 2 ? 2 : next.level;
  const target: WritableSegment = { title: "Target", level, parents: above, body: annotations.join("\n") };
  return at === -1 ? [...segments, target] : [...segments.slice(0, at), target, ...segments.slice(at)];
}

/** A capability may say all it says in its title. */
function bodyOf({ content, title, spec_type }: SpecBlock): string {
  const isBare = content === title && spec_type === "requirement" && !/^capabilities$/i.test(title);
  return isBare ? "" : content;
}

function titleOf(segments: readonly WritableSegment[]): WritableSegment["parents"] {
  const last = segments.findLast(({ level }) => level === 1);
  return last?.title === undefined ? [] : [{ level: 1, title: last.title }];
}
