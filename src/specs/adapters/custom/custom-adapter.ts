import { stringify } from "yaml";
import { compileGlob } from "../../../base/glob/glob.ts";
import type { Diagnostic } from "../../../protocol/diagnostic.ts";
import type { SpecBlock } from "../../../protocol/spec-block.ts";
import type { ParsedSpecs, SpecAdapter, SpecDraft, SpecSource, WrittenSpecs } from "../../adapter.ts";
import { atMost, type DataProblem, type DataRecord } from "../../data/data-record.ts";
import { type DataFormat, dataFormatOf, readRecords } from "../../data/read-records.ts";
import { blocksByPath, withFrontMatter } from "../../export/blocks-by-path.ts";
import { frontMatterDiagnostics, unclosedDiagnostics } from "../../markdown/diagnostics.ts";
import { readFrontMatter } from "../../markdown/front-matter.ts";
import { type MarkdownScan, scanMarkdown, textOfLines } from "../../markdown/scan-markdown.ts";
import { withoutBlankEdges } from "../../markdown/sections.ts";
import { blockTitle } from "../../model/block-title.ts";
import { mentionsIn } from "../../model/mentions.ts";
import { type CustomDefaults, fileId, recordDraft } from "./record-draft.ts";

/** A source of the project's own, as the config names it. */
export interface CustomSource extends CustomDefaults {
  /** A glob, relative to the project root. */
  readonly include: string;
}

/**
 * Creates the adapter of the files that the config names. The first source whose glob matches gives
 * a file's defaults.
 *
 * `.json`, `.jsonl`, `.ndjson`, `.yaml` and `.yml` files hold spec blocks with their ids; any other
 * file is Markdown and one block, with its fields in the front matter. There, an id, title and type
 * need not be declared: they are the file's name, its first heading, and "requirement".
 */
export function createCustomAdapter(sources: readonly CustomSource[]): SpecAdapter {
  const globs = sources.map((source) => ({ source, glob: compileGlob(source.include) }));
  const sourceOf = (path: string): CustomSource | undefined =>
    globs.find(({ glob }) => glob.matches(path))?.source;
  return {
    name: "custom",
    framework: "custom",
    matches: (path) => sourceOf(path) !== undefined,
    parse: (source) => parse(source, sourceOf(source.path) ?? {}),
    write: writeCustom,
  };
}

function parse(source: SpecSource, { spec_type, tags }: CustomDefaults): ParsedSpecs {
  const defaults = { ...(spec_type !== undefined && { spec_type }), ...(tags !== undefined && { tags }) };
  const format = dataFormatOf(source.path);
  return format === undefined ? readMarkdownFile(source, defaults) : readDataFile(source, format, defaults);
}

/** The spec blocks that a JSON, JSONL or YAML file holds. */
function readDataFile(source: SpecSource, format: DataFormat, defaults: CustomDefaults): ParsedSpecs {
  const { path } = source;
  const { records, problems } = readRecords(source.text, format);
  const drafts: SpecDraft[] = [];
  const diagnostics: Diagnostic[] = problems.map((problem) => toDiagnostic(problem, path));
  for (const record of records) {
    const read = recordDraft({ ...record, path, mentions: mentionsOf(record) }, defaults);
    if (read.draft !== undefined) drafts.push(read.draft);
    for (const diagnostic of read.diagnostics) diagnostics.push(diagnostic);
  }
  return { drafts, diagnostics: atMost(diagnostics, path) };
}

function toDiagnostic({ message, line, field, isLimit }: DataProblem, path: string): Diagnostic {
  return {
    severity: "error",
    rule: isLimit === true ? "limit" : "structure",
    message,
    path,
    ...(line !== undefined && { line }),
    ...(field !== undefined && { field }),
  };
}

/** The lines of a content are not those of the file, so a mention stands where its record starts. */
function mentionsOf({ value, startLine, lineOf }: DataRecord): SpecDraft["mentions"] {
  const content =
    typeof value === "object" && value !== null && "content" in value ? value.content : undefined;
  if (typeof content !== "string") return [];
  const scan = scanMarkdown(content);
  const mentions = mentionsIn(scan, 1, scan.lineCount);
  const line = mentions.length === 0 ? startLine : lineOf("content");
  return mentions.map((mention) => ({ ...mention, line }));
}

/** A Markdown file is one block: its front matter has the fields, its text is the content. */
function readMarkdownFile(source: SpecSource, defaults: CustomDefaults): ParsedSpecs {
  const { path } = source;
  const scan = scanMarkdown(source.text);
  const { data, raw, problems } = readFrontMatter(scan);
  const { from, to } = withoutBlankEdges(scan, scan.bodyLine, scan.lineCount);
  const body = textOfLines(scan, from, to);
  const found = [...frontMatterDiagnostics(path, problems), ...unclosedDiagnostics(scan, path)];
  if (body === "" && raw.trim() === "") return { drafts: [], diagnostics: found };
  const fileName = path.slice(path.lastIndexOf("/") + 1).replace(/\.[^.]*$/, "");
  const title = scan.headings.find((heading) => heading.title !== "")?.title ?? blockTitle(fileName);
  const { draft, diagnostics } = recordDraft(
    {
      value: { title: title || "Untitled", ...data, ...(body !== "" && { content: body }) },
      path,
      startLine: body === "" ? 1 : from,
      endLine: body === "" ? scan.lineCount : to,
      lineOf: (field) => lineOfKey(scan, field),
      fallbackId: fileId(path),
      mentions: mentionsIn(scan, from, to),
    },
    { spec_type: "requirement", ...defaults },
  );
  return { drafts: draft === undefined ? [] : [draft], diagnostics: [...found, ...diagnostics] };
}

/** The line of a key of the front matter; line 1 where it has no such key. */
function lineOfKey(scan: MarkdownScan, key: string): number {
  for (let line = 2; line < scan.bodyLine; line += 1) {
    const text = textOfLines(scan, line, line);
    if (text.startsWith(key) && /^[ \t]*:/.test(text.slice(key.length))) return line;
  }
  return 1;
}

/** Renders each file of the blocks in the format that its name says. */
function writeCustom(blocks: readonly SpecBlock[]): WrittenSpecs {
  const files = blocksByPath(blocks).map(({ path, blocks: own }) => ({
    path,
    content: contentOf(path, own),
  }));
  return { files, losses: [] };
}

function contentOf(path: string, blocks: readonly SpecBlock[]): string {
  switch (dataFormatOf(path)) {
    case "json":
      return `${JSON.stringify({ specs: blocks.map(toRecord) }, null, 2)}\n`;
    case "jsonl":
      return blocks.map((block) => `${JSON.stringify(toRecord(block))}\n`).join("");
    case "yaml":
      return toYaml({ specs: blocks.map(toRecord) });
    case undefined:
      return markdownOf(blocks);
  }
}

/** A Markdown file holds one block: its first one. */
function markdownOf([block]: readonly SpecBlock[]): string {
  if (block === undefined) return "";
  const { content, ...fields } = toRecord(block);
  return withFrontMatter(toYaml(fields).trimEnd(), `${String(content)}\n`);
}

/** Long texts stay on one line, because folding them would not read back the same everywhere. */
function toYaml(value: unknown): string {
  return stringify(value, { lineWidth: 0, aliasDuplicateObjects: false });
}

/** A block as a record of a file with a path of its own: what the file says by itself is left out. */
function toRecord(block: SpecBlock): Readonly<Record<string, unknown>> {
  const { path: _path, metadata, framework, ...fields } = block;
  const { source: _source, origin, ...declared } = metadata;
  return {
    ...fields,
    ...(framework !== "custom" && { framework }),
    ...(typeof origin === "string" && { path: origin }),
    ...(Object.keys(declared).length > 0 && { metadata: declared }),
  };
}
