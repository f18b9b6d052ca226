import { type SyncFormat, syncFormats } from "../../protocol/enums.ts";
import { splitLines } from "../../specs/markdown/characters.ts";
import { isOnlyImports } from "../guideline-imports.ts";
import type { GuidelineRecord } from "../guideline-record.ts";
import { readGuidelines } from "../read-guidelines.ts";
import {
  audienceOf,
  type PlannedFile,
  type PlannedSync,
  planSync,
  realPathOf,
  type SyncFile,
  type SyncInput,
  sameText,
  sourceRecords,
} from "./plan-sync.ts";
import { renderTarget, unfit } from "./render-targets.ts";

/** Personal files are not shared with the team. */
const personal = /(?:^|\/)CLAUDE\.local\.md$/;

/**
 * The plan of a sync that first moves hand-written guidelines from the targets into the source: each guideline that the source
 * lacks becomes a section or file of the source, and is removed from the target, where kit writes its own copy. No text is lost:
 * a section whose title is taken gets another title, and text that the source format cannot express stays in the target.
 */
export function planAdoption(input: SyncInput): PlannedSync {
  const { source, targets, files } = input;
  const inSource = sourceRecords(files, source);
  const sourceFiles = new Set(inSource.map(({ source_file }) => realPathOf(files, source_file)));
  const leftOut: string[] = [];
  const adopted: GuidelineRecord[] = [];
  const removed = new Map<SyncFile, GuidelineRecord[]>();
  for (const file of files) {
    if (file.problem !== undefined || personal.test(file.path) || sourceFiles.has(file.linksTo ?? file.path))
      continue;
    for (const record of file.records) {
      if (record.managed !== undefined || !targets.some((format) => format === record.source_type)) continue;
      // A heading without text is not adopted.
      if (record.content === "" || isOnlyImports(record.content)) continue;
      const reason = unfit(record, source);
      if (reason !== undefined) {
        leftOut.push(`"${record.title}" (${record.source_file}) stays there: it ${reason}`);
        continue;
      }
      const known = [...inSource, ...adopted];
      if (
        !known.some((one) => audienceOf(one) === audienceOf(record) && sameText(one.content, record.content))
      )
        adopted.push(withFreeTitle({ ...record, source_type: source }, known));
      removed.set(file, [...(removed.get(file) ?? []), record]);
    }
  }
  const written = writeToSource(adopted, input);
  const texts = new Map<string, string | undefined>(written.texts);
  for (const [file, records] of removed) {
    const isLost = records.some((record) => written.lost.has(record.id));
    if (!isLost) texts.set(file.linksTo ?? file.path, withoutRecords(file.text, records));
    else leftOut.push(`${file.path} stays as it is: the source leaves a code fence or a comment open.`);
  }
  const plan = planSync({ ...input, files: withTexts(files, texts) });
  return withOriginals(plan, { files, texts, source, written: written.reasons, leftOut });
}

function withFreeTitle(record: GuidelineRecord, known: readonly GuidelineRecord[]): GuidelineRecord {
  const isTaken = (title: string): boolean =>
    known.some((one) => plain(one.title) === plain(title) && one.scope === record.scope);
  const base = `${record.title} (from ${record.source_file})`;
  let title = record.title;
  for (let n = 1; isTaken(title); n += 1) title = n === 1 ? base : `${base}, ${n}`;
  return { ...record, title };
}

/** Titles that differ in case or blanks only count as one. */
function plain(title: string): string {
  return title.toLowerCase().replace(/\s+/g, " ").trim();
}

interface WrittenSource {
  readonly texts: ReadonlyMap<string, string>;
  /** One sentence per source file: the guidelines that it adopts. */
  readonly reasons: ReadonlyMap<string, { readonly reason: string; readonly losses: readonly string[] }>;
  /** Ids of guidelines that would not be read back from where they would be written. */
  readonly lost: ReadonlySet<string>;
}

function writeToSource(adopted: readonly GuidelineRecord[], { source, files }: SyncInput): WrittenSource {
  const texts = new Map<string, string>();
  const reasons = new Map<string, { reason: string; losses: readonly string[] }>();
  const lost = new Set<string>();
  const byPath = new Map(files.map((file) => [file.path, file]));
  const rendered = renderTarget(adopted, source, (path) => byPath.has(path));
  for (const { path, kind, text, guidelines, losses } of rendered.files) {
    const file = byPath.get(path);
    const real = file?.linksTo ?? path;
    const next = kind === "file" ? text : appended(file?.text ?? "", text);
    const back = new Set(
      readGuidelines({ path, text: next.replace(/^\ufeff/, "") }).records.map(({ title }) => title),
    );
    if (!guidelines.every(({ title }) => back.has(title))) {
      for (const { id } of guidelines) lost.add(id);
      continue;
    }
    texts.set(real, next);
    const from = [...new Set(guidelines.map(({ source_file }) => source_file))].join(", ");
    const names = guidelines.map(({ title }) => `"${title}"`).join(", ");
    reasons.set(real, { reason: `Takes over ${names} from ${from}.`, losses });
  }
  return { texts, reasons, lost };
}

/** Appends sections to a text after a blank line, with the line ends of the text. */
function appended(text: string, sections: string): string {
  const lineEnd = /\r\n|\n|\r/.exec(text)?.[0] ?? "\n";
  const addition = sections.replace(/\r\n|\n|\r/g, lineEnd) + lineEnd;
  const before = text.replace(/[ \t\r\n]+$/, "");
  return before.replace(/^\ufeff/, "") === "" ? before + addition : before + lineEnd + lineEnd + addition;
}

/** A text without the lines of guidelines; empty where only blank lines remain. */
function withoutRecords(text: string, records: readonly GuidelineRecord[]): string | undefined {
  if (records.some(({ whole_file }) => whole_file)) return undefined;
  const mark = text.startsWith("\ufeff") ? "\ufeff" : "";
  const body = text.slice(mark.length);
  const { starts } = splitLines(body);
  const gone = new Set<number>();
  for (const { span } of records)
    for (let line = span.start_line; line <= span.end_line; line += 1) gone.add(line);
  let remaining = "";
  let wasGone = false;
  for (let line = 1; line <= starts.length; line += 1) {
    const from = starts[line - 1] ?? body.length;
    const piece = body.slice(from, starts[line] ?? body.length);
    // The blank lines after a removed part are removed too.
    wasGone = gone.has(line) || (wasGone && piece.trim() === "");
    if (!wasGone) remaining += piece;
  }
  return remaining.trim() === "" ? undefined : mark + remaining;
}

/** The files after the adoption, parsed; each under its real path. */
function withTexts(files: readonly SyncFile[], texts: ReadonlyMap<string, string | undefined>): SyncFile[] {
  const known = new Set(files.map(({ path, linksTo }) => linksTo ?? path));
  const changed = files.flatMap((file): SyncFile[] => {
    const real = file.linksTo ?? file.path;
    if (!texts.has(real)) return [file];
    const text = texts.get(real);
    return text === undefined ? [] : [{ ...file, text, records: read(file.path, text) }];
  });
  const created = [...texts].flatMap(([path, text]): SyncFile[] =>
    known.has(path) || text === undefined ? [] : [{ path, text, records: read(path, text) }],
  );
  // In the order of a project's files, so that the next sync writes the same.
  return [...changed, ...created].sort((one, other) => (one.path < other.path ? -1 : 1));
}

function read(path: string, text: string): readonly GuidelineRecord[] {
  return readGuidelines({ path, text: text.replace(/^\ufeff/, "") }).records;
}

interface Originals {
  readonly files: readonly SyncFile[];
  readonly texts: ReadonlyMap<string, string | undefined>;
  readonly source: SyncFormat;
  readonly written: WrittenSource["reasons"];
  readonly leftOut: readonly string[];
}

/** The plan against the files on disk. The source is written first, so that a failure half way loses nothing. */
function withOriginals(
  plan: PlannedSync,
  { files, texts, source, written, leftOut }: Originals,
): PlannedSync {
  const originals = new Map(files.map(({ path, linksTo, text }) => [linksTo ?? path, text]));
  const formats = new Map(
    files.map(({ path, linksTo, records: [first] }) => [
      linksTo ?? path,
      syncFormats.find((format) => format === first?.source_type),
    ]),
  );
  const entries = new Map<string, PlannedFile>();
  const seen = new Set<string>();
  const real = (path: string): string => realPathOf(files, path);
  for (const entry of plan.entries) {
    const after = entry.action === "unchanged" ? (texts.get(real(entry.path)) ?? entry.after) : entry.after;
    entries.set(entry.path, toEntry(entry, originals.get(real(entry.path)), after));
    if (entry.action !== "unchanged" || texts.has(real(entry.path))) seen.add(real(entry.path));
  }
  for (const [path, text] of texts) {
    if (seen.has(path)) continue;
    const format = written.has(path) ? source : (formats.get(path) ?? source);
    const own = written.get(path) ?? { reason: "The source has what this file said.", losses: [] };
    entries.set(path, toEntry({ path, format, ...own, action: "update" }, originals.get(path), text));
  }
  const ordered = [...entries.values()].sort((one, other) => {
    const [isFirst, isSecond] = [written.has(real(one.path)), written.has(real(other.path))];
    if (isFirst !== isSecond) return isFirst ? -1 : 1;
    return one.path < other.path ? -1 : 1;
  });
  return {
    ...plan,
    left_out: [...plan.left_out, ...leftOut],
    entries: ordered,
    in_sync: ordered.every(({ action }) => action === "unchanged"),
  };
}

function toEntry(entry: PlannedFile, before: string | undefined, after: string | undefined): PlannedFile {
  const { before: _before, after: _after, ...base } = entry;
  const texts = { before, after };
  if (entry.action === "conflict") return { ...base, ...texts };
  const action =
    before === after
      ? "unchanged"
      : before === undefined
        ? "create"
        : after === undefined
          ? "delete"
          : "update";
  return { ...base, ...texts, action };
}
