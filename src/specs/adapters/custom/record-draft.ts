import type { Diagnostic } from "../../../protocol/diagnostic.ts";
import { lifecycles, priorities } from "../../../protocol/enums.ts";
import type { Framework, SpecMetadata, SpecType } from "../../../protocol/spec-block.ts";
import type { DraftLink, DraftMention, SpecDraft } from "../../adapter.ts";
import { slugOf } from "../../model/slug.ts";
import { validateBlock } from "../../model/validate.ts";

/** The configuration for the files of one glob. */
export interface CustomDefaults {
  readonly spec_type?: string | undefined;
  readonly tags?: readonly string[] | undefined;
}

/** A record as its file declares it, with the place it stands at. */
export interface DeclaredRecord {
  readonly value: unknown;
  readonly path: string;
  readonly startLine: number;
  readonly endLine: number;
  lineOf(field: string): number;
  /** The base id of a record that declares none; without it, an id is required. */
  readonly fallbackId?: string;
  readonly mentions: readonly DraftMention[];
}

type Fields = Readonly<Record<string, unknown>>;

/** Without these, or with a wrong one, a record is no block. */
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

/**
 * A record as a draft. Every rule of the record that it breaks is a diagnostic with its line; a field
 * that is not essential is then left out, and without an essential one there is no draft. Keys that
 * are no field of the record go into `metadata`.
 */
export function recordDraft(
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

/** Declared metadata, and keys that are no field. The place in this file goes before a declared one. */
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

/** Front matter often has one tag, or several with commas between them. */
function tagsOf(value: unknown): unknown {
  if (typeof value !== "string") return value;
  return value
    .split(",")
    .map((tag) => tag.trim())
    .filter((tag) => tag !== "");
}

function isRecord(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The base id of a file that declares none: `custom-<file name>`. */
export function fileId(path: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1).replace(/\.[^.]*$/, "");
  return `custom-${slugOf(name) || "document"}`;
}
