import { perObject } from "../../base/remember.ts";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import { type SyncFormat, type SyncTarget, syncFormats } from "../../protocol/enums.ts";
import { resolveImport } from "../explain/explain-by-table.ts";
import { isOnlyImports } from "../guideline-imports.ts";
import { folderOf, type GuidelineRecord } from "../guideline-record.ts";
import { compareCopies, type Drift, type TextLines, textLinesOf } from "./compare-texts.ts";
import { type LintProject, nameAndPlace, quoteText, warningAbout } from "./finding.ts";
import { isReadTogether } from "./read-together.ts";

/** Shorter texts, counted without blanks, are not reported as copies. */
const minComparedLength = 24;
/** With so many guidelines of one title, each is compared with this many others. */
const maxCompared = 8;

/** The formats that a sync of the project keeps in step, as the configuration names them. */
export interface SyncedFormats {
  readonly source?: SyncFormat | undefined;
  readonly targets?: readonly SyncTarget[] | undefined;
}

/**
 * Copies: the same text twice in front of one tool (`duplicate-guideline`), and copies of one text that no longer agree (`drift`).
 * Several of them between the same two files are one finding. A copy that a sync wrote is not reported.
 */
export function findCopies(
  records: readonly GuidelineRecord[],
  project: LintProject,
  synced: SyncedFormats = {},
): Diagnostic[] {
  const isSynced = syncedFormats(records, synced);
  const handWritten = records.filter(isHandWritten);
  const importersOf = createImporters(records);
  // To normalize all texts of a large project takes long; equal texts begin with the same word.
  const words = new Set(handWritten.filter(project.isAsked).map(firstWord));
  const comparable = handWritten.filter((record) => words.has(firstWord(record)));
  return [...findDuplicates(comparable, { isSynced, importersOf }), ...findDrift(handWritten, project)];
}

const isHandWritten = perObject(
  ({ managed, source_type, content }: GuidelineRecord) =>
    managed === undefined && source_type !== "sample" && !isOnlyImports(content),
);

const titleOf = perObject(({ scope, title }: GuidelineRecord) =>
  JSON.stringify([scope, title.toLowerCase().replace(/\s+/g, " ")]),
);

interface Pair {
  readonly record: GuidelineRecord;
  readonly original: GuidelineRecord;
}

interface CopyRules {
  /** Whether a sync keeps a format in step. */
  readonly isSynced: (format: string) => boolean;
  readonly importersOf: (path: string) => ReadonlySet<string>;
}

function findDuplicates(
  records: readonly GuidelineRecord[],
  { isSynced, importersOf }: CopyRules,
): Diagnostic[] {
  const pairs: Pair[] = [];
  const long = records.filter(({ content }) => content.replace(/\s/g, "").length >= minComparedLength);
  for (const copies of Map.groupBy(long, ({ content }) => normalized(content)).values()) {
    for (const [index, record] of copies.entries()) {
      const original = copies
        .slice(0, Math.min(index, maxCompared))
        .find((one) => isReadTogether(one, record, importersOf) && !isInStep(one, record, isSynced));
      if (original !== undefined) pairs.push({ record, original });
    }
  }
  return byFiles(pairs).map(([first, ...others]) => {
    const { record, original } = first;
    const message =
      others.length === 0
        ? `"${record.title}" has the same text as ${nameAndPlace(original)}.`
        : `${others.length + 1} guidelines have the same text as in ${original.source_file}: ${listed([first, ...others])}.`;
    const found = { rule: "duplicate-guideline", code: "same_text", message } as const;
    return warningAbout(record, {
      ...found,
      other: { path: original.source_file, line: original.span.start_line },
    });
  });
}

function findDrift(records: readonly GuidelineRecord[], project: LintProject): Diagnostic[] {
  const texts = new Map<string, TextLines>();
  const textOf = (record: GuidelineRecord): TextLines => {
    const text = texts.get(record.id) ?? textLinesOf(record, project.scanOf(record.source_file));
    texts.set(record.id, text);
    return text;
  };
  const drifted: (Pair & { readonly drift: Drift })[] = [];
  const byTitle = Map.groupBy(records, titleOf);
  for (const group of byTitle.values()) {
    if (!group.some(project.isAsked)) continue;
    for (const [index, record] of group.entries()) {
      for (const original of group.slice(0, Math.min(index, maxCompared))) {
        if (original.source_file === record.source_file) continue;
        const drift = compareCopies(textOf(record), textOf(original));
        if (drift === undefined) continue;
        drifted.push({ record, original, drift });
        break;
      }
    }
  }
  return byFiles(drifted).map((pairs) => {
    const [{ record, original, drift }, ...others] = pairs;
    const lines = pairs.reduce((sum, each) => sum + each.drift.changed, 0);
    const total = pairs.reduce((sum, each) => sum + each.drift.total, 0);
    const what =
      others.length === 0
        ? `"${record.title}" and its copy in ${original.source_file} differ`
        : `${pairs.length} guidelines and their copies in ${original.source_file} differ (${listed(pairs)})`;
    const where = `first in line ${drift.line} here and line ${drift.otherLine} there`;
    const message = `${what}: ${lines.toLocaleString("en")} of ${total.toLocaleString("en")} lines, ${where}.`;
    const other = { path: original.source_file, line: drift.otherLine };
    return warningAbout(
      record,
      { rule: "drift", code: "copies_differ", message, other },
      { line: drift.line },
    );
  });
}

/** Pairs by their two files, in order. */
function byFiles<One extends Pair>(pairs: readonly One[]): [One, ...One[]][] {
  const groups = Map.groupBy(pairs, ({ record, original }) =>
    JSON.stringify([record.source_file, original.source_file]),
  );
  return [...groups.values()].flatMap(([first, ...others]): [One, ...One[]][] =>
    first === undefined ? [] : [[first, ...others]],
  );
}

function listed(pairs: readonly Pair[]): string {
  const names = pairs.map(({ record }) => `"${quoteText(record.title)}"`);
  return names.length > 4 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more` : names.join(", ");
}

/** The files that import a file, directly or over other files. */
function createImporters(records: readonly GuidelineRecord[]): (path: string) => ReadonlySet<string> {
  const direct = new Map<string, Set<string>>();
  for (const { tool, source_file, imports } of records) {
    if (tool === "kiro") continue;
    for (const { path } of imports) {
      const target = resolveImport(path, folderOf(source_file));
      if (target === undefined) continue;
      const importers = direct.get(target) ?? new Set();
      direct.set(target, importers.add(source_file));
    }
  }
  return (path) => {
    const found = new Set<string>();
    const open = [path];
    for (let next = open.pop(); next !== undefined; next = open.pop())
      for (const importer of direct.get(next) ?? [])
        if (!found.has(importer)) {
          found.add(importer);
          open.push(importer);
        }
    return found;
  };
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

const firstWord = perObject(({ content }: GuidelineRecord) => /\S+/.exec(content)?.[0].toLowerCase() ?? "");

function normalized(text: string): string {
  return text.replace(/\s+/g, " ").trim().toLowerCase();
}
