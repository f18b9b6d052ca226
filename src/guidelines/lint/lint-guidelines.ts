import { compileGlob, type Glob } from "../../base/glob/glob.ts";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import { type SyncFormat, syncFormats } from "../../protocol/enums.ts";
import { splitOutsideBraces } from "../../specs/markdown/characters.ts";
import { resolveImport } from "../explain/explain-by-table.ts";
import { folderOf, type GuidelineRecord, nameOf, relativeTo } from "../guideline-record.ts";
import { matches, toolTable } from "../tools/tool-table.ts";

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
  const projectRecords = records.filter((record) => record.source_type !== "sample");
  const diagnostics = [
    ...repeatedGuidelines(projectRecords, synced),
    ...globDiagnostics(projectRecords, files),
    ...ineffectiveGuidelines(projectRecords, (path) => known.has(path)),
    ...oversizedFiles(projectRecords),
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
  const message = `"${record.title}" is never read: ${override} replaces its file.`;
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
    const message = `The import of ${written} names a file that the project does not have.`;
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

/**
 * A warning for every declared glob that matches no file, with a likely correction that does match. `files` are all files of the
 * project; without any there are no warnings.
 */
export function globDiagnostics(records: readonly GuidelineRecord[], files: readonly string[]): Diagnostic[] {
  const index = createFileIndex(files);
  if (index.size === 0) return [];
  const verdicts = new Map<string, Verdict | undefined>();
  // The front matter of a sectioned file applies to each of its sections, but is reported once.
  const reported = new Set<string>();
  const diagnostics: Diagnostic[] = [];
  for (const record of records) {
    if (record.source_type === "sample") continue;
    for (const source of new Set(record.globs)) {
      const key = `${record.scope}\n${source}`;
      if (!verdicts.has(key)) verdicts.set(key, judge(source, record.scope, index));
      const verdict = verdicts.get(key);
      const place = `${record.source_file}\n${source}`;
      if (verdict === undefined || reported.has(place)) continue;
      reported.add(place);
      diagnostics.push({
        severity: "warning",
        rule: "glob-no-match",
        ...verdict,
        path: record.source_file,
        line: record.span.start_line,
        id: record.id,
        field: "file_pattern",
      });
    }
  }
  return diagnostics;
}

interface Verdict {
  readonly code: "glob_invalid" | "glob_no_file";
  readonly message: string;
}

function judge(source: string, scope: string, index: FileIndex): Verdict | undefined {
  const glob = compileGlob(source);
  if (glob.invalid === undefined && index.hasMatch(glob, scope)) return undefined;
  const below = scope === "" ? "" : ` below ${quoteText(scope)}`;
  const intended = intendedGlob(source, scope, index);
  const hint = intended === undefined ? "" : ` Did you mean ${intended}?`;
  return glob.invalid === undefined
    ? { code: "glob_no_file", message: `The glob "${quoteText(source)}" matches no file${below}.${hint}` }
    : {
        code: "glob_invalid",
        message: `The glob "${quoteText(source)}" matches nothing: ${glob.invalid}.${hint}`,
      };
}

/** The first likely reading of a glob that matches a file, quoted; the corrections are for mistakes seen in real rules. */
function intendedGlob(source: string, scope: string, index: FileIndex): string | undefined {
  const parts = splitOutsideBraces(source).map((part) => part.trim());
  if (parts.length > 1 && parts.some((part) => isMatched(part, scope, index)))
    return `a list of ${parts.map((part) => `"${quoteText(part)}"`).join(", ")}`;
  const path = source.replaceAll("\\", "/").replace(/^(?:\.?\/)+/, "");
  const fromRoot = scope !== "" && path.startsWith(`${scope}/`) ? [path.slice(scope.length + 1)] : [];
  const folder = path.replace(/\/+$/, "");
  const mayBeFolder = !/[*?[{][^/]*$/.test(folder);
  const guesses = [
    ...fromRoot,
    path,
    path.replace(/\/\*$/, "/**"),
    ...(mayBeFolder ? [`${folder}/**`] : []),
    `**/${path}`,
    path.replace(/\/(\*[^/]*)$/, "/**/$1"),
    ...(mayBeFolder ? [`**/${folder}/**`] : []),
  ];
  const found = guesses.find((guess) => guess !== source && isMatched(guess, scope, index));
  return found === undefined ? undefined : `"${quoteText(found)}"`;
}

function isMatched(source: string, scope: string, index: FileIndex): boolean {
  const glob = compileGlob(source);
  return glob.invalid === undefined && index.hasMatch(glob, scope);
}

function quoteText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a message
  return text.slice(0, 120).replace(/[\u0000-\u001f\u007f-\u009f]/g, " ");
}

/** The files of a project, so that a glob is tried on few of them. */
interface FileIndex {
  readonly size: number;
  /** Whether a file below `scope` matches a glob relative to it. */
  hasMatch(glob: Glob, scope: string): boolean;
}

/** `files` are project-relative, in any order. */
function createFileIndex(files: readonly string[]): FileIndex {
  const sorted = files.toSorted();
  const names = new Set(sorted.flatMap((path) => path.split("/")));
  const byExtension = Map.groupBy(sorted, extensionOf);
  const candidates = (glob: Glob, scope: string): readonly string[] => {
    if (!glob.names.every((name) => names.has(name))) return [];
    const dot = glob.suffix.lastIndexOf(".");
    const list =
      dot === -1 || glob.suffix.includes("/") ? sorted : (byExtension.get(glob.suffix.slice(dot)) ?? []);
    return startingWith(list, scope === "" ? glob.prefix : `${scope}/${glob.prefix}`);
  };
  return {
    size: sorted.length,
    hasMatch: (glob, scope) => candidates(glob, scope).some((path) => glob.matches(relativeTo(path, scope))),
  };
}

function extensionOf(path: string): string {
  const dot = path.lastIndexOf(".");
  return dot > path.lastIndexOf("/") ? path.slice(dot) : "";
}

/** The part of a sorted list whose texts begin with a prefix. */
function startingWith(sorted: readonly string[], prefix: string): readonly string[] {
  if (prefix === "") return sorted;
  const from = firstIndex(sorted, (text) => text >= prefix);
  const to = firstIndex(sorted, (text) => text >= prefix && !text.startsWith(prefix));
  return sorted.slice(from, to);
}

function firstIndex(sorted: readonly string[], passes: (text: string) => boolean): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (passes(sorted[middle] ?? "")) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Shorter texts, counted without blanks, are not reported as copies. */
const minComparedLength = 24;

/**
 * Guidelines with the same text, and guidelines of the same heading that apply to the same files with different texts. Each
 * diagnostic names both places. A copy that a sync wrote is not reported.
 */
export function repeatedGuidelines(
  records: readonly GuidelineRecord[],
  synced: SyncedFormats = {},
): Diagnostic[] {
  const isSynced = syncedFormats(records, synced);
  const handWritten = records.filter(
    (record) => record.managed === undefined && record.source_type !== "sample",
  );
  const texts = new Map(handWritten.map((record) => [record.id, normalized(record.content)]));
  const textOf = (record: GuidelineRecord): string => texts.get(record.id) ?? "";
  const diagnostics: Diagnostic[] = [];

  const copies = handWritten.filter(
    (record) => textOf(record).replaceAll(" ", "").length >= minComparedLength,
  );
  for (const [first, ...others] of Map.groupBy(copies, textOf).values()) {
    for (const record of others) {
      if (first === undefined || isInStep(first, record, isSynced)) continue;
      const message = `"${record.title}" has the same text as ${placeOf(first)}.`;
      diagnostics.push(warning(record, { rule: "duplicate-guideline", code: "same_text", message }));
    }
  }

  const withText = handWritten.filter((record) => textOf(record) !== "" && hasHeading(record));
  for (const [first, ...others] of Map.groupBy(withText, audienceOf).values()) {
    for (const record of others) {
      if (first === undefined || first.source_file === record.source_file) continue;
      if (textOf(first) === textOf(record)) continue;
      const message = `"${record.title}" differs from ${placeOf(first)}, and both apply to the same files.`;
      diagnostics.push(warning(record, { rule: "contradiction", code: "same_heading", message }));
    }
  }
  return diagnostics;
}

/** The formats that a sync of the project keeps in step, as the configuration names them. */
interface SyncedFormats {
  readonly source?: SyncFormat | undefined;
  readonly targets?: readonly SyncFormat[] | undefined;
}

/** The configured formats, and those with files that a sync wrote. */
function syncedFormats(
  records: readonly GuidelineRecord[],
  { source, targets }: SyncedFormats,
): (format: string) => boolean {
  const formats = new Set<string>(source === undefined ? [] : [source, ...(targets ?? syncFormats)]);
  for (const { managed, source_type } of records)
    if (managed !== undefined) formats.add(managed).add(source_type);
  return (format) => formats.has(format);
}

/** A copy that a sync leaves alone: the same text under the same title as in the source. */
function isInStep(
  one: GuidelineRecord,
  other: GuidelineRecord,
  isSynced: (format: string) => boolean,
): boolean {
  if (one.source_type === other.source_type || audienceOf(one) !== audienceOf(other)) return false;
  return isSynced(one.source_type) && isSynced(other.source_type);
}

/** Guidelines of one heading that apply to the same files. */
function audienceOf(record: GuidelineRecord): string {
  const globs = record.inclusion === "pattern" ? record.globs.toSorted() : [];
  return JSON.stringify([record.scope, globs, record.title.toLowerCase().replace(/\s+/g, " ")]);
}

/** Text without a heading is named after its file, which does not describe its topic. */
function hasHeading(record: GuidelineRecord): boolean {
  return record.title !== record.source_file.slice(record.source_file.lastIndexOf("/") + 1);
}

function normalized(text: string): string {
  return text.replace(/\s+/g, " ").trim().toLowerCase();
}

function placeOf(record: GuidelineRecord): string {
  return `"${record.title}" in ${record.source_file}:${record.span.start_line}`;
}

function warning(
  record: GuidelineRecord,
  about: Pick<Diagnostic, "rule" | "message"> & { readonly code: string },
): Diagnostic {
  return {
    severity: "warning",
    ...about,
    path: record.source_file,
    line: record.span.start_line,
    id: record.id,
  };
}
