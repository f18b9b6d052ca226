import { stringify } from "yaml";
import { compileGlob } from "../../../base/glob/glob.ts";
import { isRecord } from "../../../base/record.ts";
import type { Diagnostic } from "../../../protocol/diagnostic.ts";
import { frameworks, lifecycles, priorities, specTypes } from "../../../protocol/enums.ts";
import type { Framework, SpecBlock, SpecMetadata, SpecType } from "../../../protocol/spec-block.ts";
import type {
  DraftLink,
  DraftMention,
  ParsedSpecs,
  SpecAdapter,
  SpecDraft,
  SpecSource,
  WrittenSpecs,
} from "../../adapter.ts";
import {
  atMost,
  type DataFormat,
  type DataProblem,
  type DataRecord,
  dataFormatOf,
  readRecords,
} from "../../data/read-data-file.ts";
import {
  type FrontMatterKeys,
  frontMatterDiagnostics,
  readFrontMatter,
} from "../../markdown/front-matter.ts";
import {
  type MarkdownScan,
  scanMarkdown,
  textOfLines,
  unclosedDiagnostics,
} from "../../markdown/scan-markdown.ts";
import { withoutBlankEdges } from "../../markdown/segments.ts";
import { renderFiles, withFrontMatter } from "../../model/assemble-blocks.ts";
import { blockTitle, slugOf } from "../../model/block-title.ts";
import { mentionsIn } from "../../model/mentions.ts";
import { validateBlock } from "../../model/validate.ts";

/** A source of the project's own, as the config names it. */
export interface CustomSource extends CustomDefaults {
  /** A glob, relative to the project root. */
  readonly include: string;
}

/**
 * Creates the adapter of the files that the config names. The first source whose glob matches a file has the file's defaults.
 *
 * `.json`, `.jsonl`, `.ndjson`, `.yaml` and `.yml` files hold spec blocks with their ids; any other file is Markdown and one
 * block, with its fields in the front matter. The default id, title and type of a Markdown file are its name, its first heading,
 * and "requirement".
 */
export function createCustomAdapter(sources: readonly CustomSource[]): SpecAdapter {
  const globs = sources.map((source) => ({ source, glob: compileGlob(source.include) }));
  const sourceOf = (path: string): CustomSource | undefined =>
    globs.find(({ glob }) => glob.matches(path))?.source;
  return {
    name: "custom",
    framework: "custom",
    keys,
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

/** The spec blocks in a JSON, JSONL or YAML file. */
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

/** The lines of a content are not lines of the file, so a mention has the line where its record starts. */
function mentionsOf({ value, startLine, lineOf }: DataRecord): SpecDraft["mentions"] {
  const content =
    typeof value === "object" && value !== null && "content" in value ? value.content : undefined;
  if (typeof content !== "string") return [];
  const scan = scanMarkdown(content);
  const mentions = mentionsIn(scan, 1, scan.lineCount);
  const line = mentions.length === 0 ? startLine : lineOf("content");
  return mentions.map((mention) => ({ ...mention, line }));
}

/** Reads a Markdown file as one block: its front matter has the fields, its text is the content. */
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

/** Renders each file in the format of its name. */
function writeCustom(blocks: readonly SpecBlock[]): WrittenSpecs {
  return renderFiles(blocks, contentOf);
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

/** A Markdown file contains one block: the first. */
function markdownOf([block]: readonly SpecBlock[]): string {
  if (block === undefined) return "";
  const { content, ...fields } = toRecord(block);
  return withFrontMatter(toYaml(fields).trimEnd(), `${String(content)}\n`);
}

/** Long texts stay on one line, because folding them would not read back the same everywhere. */
function toYaml(value: unknown): string {
  return stringify(value, { lineWidth: 0, aliasDuplicateObjects: false });
}

/** A block as a record of its file, without the fields that follow from the file. */
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

/** The configuration for the files of one glob. */
export interface CustomDefaults {
  readonly spec_type?: string | undefined;
  readonly tags?: readonly string[] | undefined;
}

/** A record as its file declares it, and its place in the file. */
interface DeclaredRecord {
  readonly value: unknown;
  readonly path: string;
  readonly startLine: number;
  readonly endLine: number;
  lineOf(field: string): number;
  /** The base id of a record that declares no id; without it, an id is required. */
  readonly fallbackId?: string;
  readonly mentions: readonly DraftMention[];
}

type Fields = Readonly<Record<string, unknown>>;

/** Without these, or with a wrong one, a record is not a block. */
const essential = new Set(["id", "framework", "spec_type", "title", "content"]);
const recordFields = new Set([
  ...essential,
  "path",
  "summary",
  "tags",
  "lifecycle",
  "priority",
  "created_at",
  "updated_at",
  "metadata",
]);

/** The text of a Markdown file is its content, and its place its path. */
const keys: FrontMatterKeys = {
  ...Object.fromEntries(
    [...recordFields].filter((field) => field !== "content" && field !== "path").map((field) => [field, []]),
  ),
  framework: frameworks,
  spec_type: specTypes,
  lifecycle: lifecycles,
  priority: priorities,
};

/**
 * A record as a draft. Every rule of the record that it breaks is a diagnostic with its line; a field
 * that is not essential is then left out, and without an essential one there is no draft. Keys that
 * are no field of the record go into `metadata`.
 */
function recordDraft(
  record: DeclaredRecord,
  defaults: CustomDefaults,
): { draft?: SpecDraft; diagnostics: readonly Diagnostic[] } {
  const { value, path } = record;
  const declared = isRecord(value) ? withoutEmpty(value) : {};
  const id = typeof declared.id === "number" ? String(declared.id) : declared.id;
  const block: Fields = {
    framework: "custom",
    ...(defaults.spec_type !== undefined && { spec_type: defaults.spec_type }),
    ...declared,
    ...(id !== undefined || record.fallbackId !== undefined ? { id: id ?? record.fallbackId } : {}),
    path,
  };
  const problems = validateBlock(isRecord(value) ? block : value, path);
  const wrong = new Set(problems.map(({ field }) => field ?? ""));
  const diagnostics = problems.map(({ field, line: _line, ...problem }) => ({
    ...problem,
    path,
    line: field === undefined ? record.startLine : record.lineOf(field),
    ...(field !== undefined && { field }),
  }));
  if (!isRecord(value) || [...wrong].some((field) => essential.has(field))) return { diagnostics };
  const valid: Fields = Object.fromEntries(Object.entries(block).filter(([key]) => !wrong.has(key)));
  return {
    draft: toDraft(record, valid, { isDeclared: id !== undefined, tags: defaults.tags ?? [] }),
    diagnostics,
  };
}

function toDraft(
  record: DeclaredRecord,
  block: Fields,
  origin: { isDeclared: boolean; tags: readonly string[] },
): SpecDraft {
  const text = (field: string): string | undefined =>
    typeof block[field] === "string" && block[field] !== "" ? block[field] : undefined;
  const summary = text("summary");
  const created = text("created_at");
  const updated = text("updated_at");
  const metadata = metadataOf(record, block);
  return {
    id: { kind: origin.isDeclared ? "declared" : "base", value: String(block.id).trim() },
    framework: block.framework as Framework,
    spec_type: block.spec_type as SpecType,
    title: String(block.title),
    content: String(block.content),
    ...(summary !== undefined && { summary }),
    tags: [...new Set([...origin.tags, ...textsIn(block.tags)])],
    lifecycle: lifecycles.find((each) => each === block.lifecycle) ?? "active",
    priority: priorities.find((each) => each === block.priority) ?? "medium",
    ...(created !== undefined && { created_at: created }),
    ...(updated !== undefined && { updated_at: updated }),
    metadata,
    span: { start_line: record.startLine, end_line: record.endLine },
    links: linksOf(metadata, record),
    mentions: record.mentions,
  };
}

/** The declared metadata, and keys that are not fields. The place in this file overrides a declared place. */
function metadataOf(record: DeclaredRecord, block: Fields): SpecMetadata {
  const { source: _source, ...declared } = isRecord(block.metadata) ? block.metadata : {};
  const others = Object.entries(block).filter(([key]) => !recordFields.has(key));
  const written = isRecord(record.value) ? record.value.path : undefined;
  const origin =
    typeof written === "string" && written !== "" && written !== record.path ? { origin: written } : {};
  return { ...Object.fromEntries(others), ...declared, ...origin };
}

function linksOf(metadata: SpecMetadata, record: DeclaredRecord): DraftLink[] {
  const line = record.lineOf("related_specs");
  return textsIn(metadata.related_specs).map((target) => ({ kind: "related", target, line }));
}

function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string" && item !== "") : [];
}

/** YAML reads `summary:` as null; a field without a value is not declared. */
function withoutEmpty(value: Fields): Fields {
  const entries = Object.entries(value).filter(([, item]) => item !== null && item !== undefined);
  return Object.fromEntries(entries.map(([key, item]) => [key, key === "tags" ? tagsOf(item) : item]));
}

/** Accepts one tag, or several tags with commas between them, as front matter often has. */
function tagsOf(value: unknown): unknown {
  if (typeof value !== "string") return value;
  return value
    .split(",")
    .map((tag) => tag.trim())
    .filter((tag) => tag !== "");
}

/** The base id of a file that declares no id: `custom-<file name>`. */
function fileId(path: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1).replace(/\.[^.]*$/, "");
  return `custom-${slugOf(name) || "document"}`;
}
