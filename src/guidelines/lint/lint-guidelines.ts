import type { Diagnostic } from "../../protocol/diagnostic.ts";
import { resolveImport } from "../explain/import-chain.ts";
import { folderOf } from "../folders.ts";
import { type GuidelineRecord, nameOf } from "../guideline-record.ts";
import { matches, toolTable } from "../tools/tool-table.ts";
import { globDiagnostics } from "./glob-diagnostics.ts";
import { repeatedGuidelines, type SyncedFormats } from "./repeated-guidelines.ts";

/**
 * Checks the guidelines of a project as a whole: duplicates, contradictions between sources, globs that match no file, rules
 * without effect, imports of missing files.
 *
 * `files` are all files of the project; identical copies among
 * `synced` formats are no duplicates. In path, then line order.
 */
export function lintGuidelines(
  records: readonly GuidelineRecord[],
  files: readonly string[],
  synced: SyncedFormats = {},
): Diagnostic[] {
  const known = new Set(files);
  const own = records.filter((record) => record.source_type !== "sample");
  const diagnostics = [
    ...repeatedGuidelines(own, synced),
    ...globDiagnostics(own, files),
    ...ineffectiveGuidelines(own, (path) => known.has(path)),
    ...oversizedFiles(own),
  ];
  return diagnostics.sort((a, b) =>
    a.path === b.path ? (a.line ?? 0) - (b.line ?? 0) : a.path < b.path ? -1 : 1,
  );
}

/** Only names of texts are taken for imports: `@acme/ui` and `@example.com` are not. */
const textFile = /\.(?:md|mdx|mdc|markdown|txt|json|ya?ml|toml|rst|adoc)$/i;

/** Guidelines that another one or their own front matter keeps from having an effect, and lost imports. */
function ineffectiveGuidelines(
  records: readonly GuidelineRecord[],
  hasFile: (path: string) => boolean,
): Diagnostic[] {
  const files = new Set(records.map((record) => record.source_file));
  return records.flatMap((record) => [
    ...overridden(record, files),
    ...ignoredGlobs(record),
    ...lostImports(record, hasFile),
  ]);
}

function overridden(record: GuidelineRecord, files: ReadonlySet<string>): Diagnostic[] {
  if (record.tool !== "agents" || !/(?:^|\/)AGENTS\.md$/.test(record.source_file)) return [];
  const override = record.source_file.replace(/AGENTS\.md$/, "AGENTS.override.md");
  if (!files.has(override)) return [];
  const message = `"${record.title}" is never read: ${override} takes the place of its file.`;
  return [about(record, { rule: "shadowed", code: "agents_override", message })];
}

function ignoredGlobs(record: GuidelineRecord): Diagnostic[] {
  const isIgnored = record.tool === "cursor" && record.inclusion === "always" && record.globs.length > 0;
  // The sections of a .cursorrules share its front matter; it is reported for the first one.
  if (!isIgnored || record.position > 0) return [];
  const cause = record.source_file.endsWith(".mdc")
    ? "alwaysApply is true, so the rule is always loaded"
    : "Cursor reads no front matter in .cursorrules, and always loads it";
  const message = `The globs have no effect: ${cause}.`;
  return [about(record, { rule: "shadowed", code: "globs_ignored", message })];
}

function lostImports(record: GuidelineRecord, hasFile: (path: string) => boolean): Diagnostic[] {
  if (record.tool === "agents") return [];
  const folder = record.tool === "kiro" ? "" : folderOf(record.source_file);
  return record.imports.flatMap(({ path: written, line }) => {
    const path = textFile.test(written) ? resolveImport(written, folder) : undefined;
    if (path === undefined || hasFile(path)) return [];
    const message = `The import of ${written} finds no file of the project.`;
    return [{ ...about(record, { rule: "import", code: "import_missing", message }), line }];
  });
}

/** Files that exceed the limit of a tool that reads them. */
function oversizedFiles(records: readonly GuidelineRecord[]): Diagnostic[] {
  return [...Map.groupBy(records, ({ source_file }) => source_file).values()].flatMap((own) => {
    const [first] = own;
    if (first === undefined) return [];
    const text = own.map(({ title, content }) => `## ${title}\n\n${content}\n`).join("\n");
    const names = [nameOf(first), ...(first.readings ?? []).map(({ read_as }) => read_as)];
    return toolTable.flatMap(({ label, limits }) =>
      limits.flatMap(({ files, max, unit }) => {
        if (!names.some((name) => matches(`**/${files}`, name))) return [];
        const size = unit === "bytes" ? new TextEncoder().encode(text).length : text.length;
        if (size <= max) return [];
        const message = `${label} reads ${max.toLocaleString("en")} ${unit} of ${files}; this file has about ${size.toLocaleString("en")}.`;
        return [{ ...about(first, { rule: "limit", code: "tool_limit", message }), line: 1 }];
      }),
    );
  });
}

function about(
  record: GuidelineRecord,
  found: Pick<Diagnostic, "rule" | "message"> & { readonly code: string },
): Diagnostic {
  return {
    severity: "warning",
    ...found,
    path: record.source_file,
    line: record.span.start_line,
    id: record.id,
  };
}
