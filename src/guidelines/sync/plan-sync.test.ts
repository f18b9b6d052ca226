import { expect, test } from "vitest";
import { type SyncFormat, syncFormats } from "../../protocol/enums.ts";
import { isCampaign } from "../../testing/campaign.suite.ts";
import { hasCorpus, loadCorpus } from "../../testing/corpus.ts";
import { managedFileOf, removeManagedPart } from "../kit-marks.ts";
import { lintGuidelines } from "../lint/lint-guidelines.ts";
import { guidelineAdapterFor, readGuidelines } from "../read-guidelines.ts";
import { planAdoption } from "./plan-adoption.ts";
import { type PlannedSync, planSync, type SyncFile, sourceRecords } from "./plan-sync.ts";

type Files = ReadonlyMap<string, string>;

const read = (files: Files): SyncFile[] =>
  [...files].map(([path, text]) => ({ path, text, records: readGuidelines({ path, text }).records }));

/**
 * The formats that the project has already, one format of files and one of sections: all others are much like
 * them.
 */
function targetsOf(source: SyncFormat, files: Files): readonly SyncFormat[] {
  const has = new Set<string | undefined>(
    [...files.keys()].map((path) => guidelineAdapterFor(path)?.source_type),
  );
  return syncFormats.filter(
    (format) => format !== source && (has.has(format) || format === "copilot" || format === "zed"),
  );
}

function plan(files: Files, source: SyncFormat): PlannedSync {
  return planSync({ source, targets: targetsOf(source, files), files: read(files) });
}

function apply(files: Files, { entries }: PlannedSync, overwrite = false): Files {
  const next = new Map(files);
  for (const { action, path, after } of entries) {
    if (action === "conflict" && !overwrite) continue;
    if (after !== undefined) next.set(path, after);
    else if (action === "delete") next.delete(path);
  }
  return new Map([...next].sort(([a], [b]) => (a < b ? -1 : 1)));
}

// An ordinary run takes a quarter of them.
const projects = loadCorpus()
  .flatMap(({ name, files }) => {
    const guidelines = files.filter(({ path }) => guidelineAdapterFor(path) !== undefined);
    const before: Files = new Map(guidelines.map(({ path, text }) => [path, text]));
    return syncFormats
      .filter((source) => sourceRecords(read(before), source).length > 0)
      .map((source) => ({ name, source, before }));
  })
  .filter((_, index) => isCampaign || index % 4 === 0);

test.skipIf(!hasCorpus)("the corpus has projects with guidelines to sync", () => {
  expect(projects.length).toBeGreaterThan(0);
});

test.skipIf(!hasCorpus).each(projects)(
  "$name is synced from $source once, without a change to what people wrote",
  ({ source, before }) => {
    const first = plan(before, source);
    const after = apply(before, first);
    for (const [path, text] of before)
      expect(removeManagedPart(after.get(path) ?? "").trimEnd()).toBe(text.trimEnd());

    const again = plan(after, source);
    const open = again.entries.filter(({ action }) => action !== "unchanged" && action !== "conflict");
    expect(open.map(({ action, path }) => `${action} ${path}`)).toEqual([]);
    const conflicts = (made: PlannedSync): string[] =>
      made.entries.filter(({ action }) => action === "conflict").map(({ path }) => path);
    expect(conflicts(again)).toEqual(conflicts(first));

    // The written files read back as the guidelines that the sync made them from.
    const written = new Set(read(after).flatMap(({ records }) => records.filter(({ managed }) => managed)));
    const texts = new Set([...written].map(({ title, content }) => JSON.stringify([title, content])));
    const originals = new Set(
      sourceRecords(read(before), source).map(({ title, content }) => JSON.stringify([title, content])),
    );
    const imports = [...texts].filter((text) => /@(?:\.\/)?AGENTS(?:\.override)?\.md/.test(text));
    expect([...texts].filter((text) => !originals.has(text) && !imports.includes(text))).toEqual([]);

    // With nothing left in the source, what kit wrote goes again.
    const forced = apply(before, plan(before, source), true);
    expect(plan(forced, source).entries.filter(({ action }) => action === "delete")).toEqual([]);
    const emptied = new Map(
      [...forced].filter(([path, text]) => managedFileOf(text) !== undefined || !isOf(source, path)),
    );
    const cleared = apply(emptied, plan(emptied, source));
    expect([...cleared.values()].some((text) => text.includes("kit:sync"))).toBe(false);
  },
);

function isOf(source: SyncFormat, path: string): boolean {
  return guidelineAdapterFor(path)?.source_type === source;
}

test.skipIf(!hasCorpus).each(projects)(
  "$name is adopted into $source, once, without a loss, and lint agrees",
  ({ source, before }) => {
    const targets = targetsOf(source, before);
    const adopt = (files: Files): PlannedSync => planAdoption({ source, targets, files: read(files) });
    const after = apply(before, adopt(before));
    const again = adopt(after);
    expect(again.entries.filter(({ action }) => action !== "unchanged" && action !== "conflict")).toEqual([]);
    const said = new Set([...after.values()].flatMap((text) => text.split(/\s*[\r\n]+\s*/)));
    const front =
      /^(?:---|(?:description|globs|alwaysApply|paths|applyTo|name|title|inclusion|fileMatchPattern)\b.*|-? ?["'*].*)$/;
    for (const { records, text } of read(before)) {
      const wasOnDisk = text.split(/\s*[\r\n]+\s*/);
      for (const { content } of records)
        for (const line of content.split(/\s*[\r\n]+\s*/))
          if (!front.test(line.trim()) && wasOnDisk.includes(line)) expect(said).toContain(line);
    }
    // Content that the source cannot express stays where it is, and may repeat something.
    const synced = read(after)
      .flatMap((file) => file.records)
      .filter(({ source_type, source_file, inclusion }) => {
        const isLeft = again.left_out.some((sentence) => sentence.includes(source_file));
        return (
          syncFormats.some((format) => format === source_type) &&
          !isLeft &&
          inclusion !== "manual" &&
          inclusion !== "auto"
        );
      });
    const formats = new Map(synced.map(({ source_file, source_type }) => [source_file, source_type]));
    const repeats = lintGuidelines(synced, { files: [], synced: { source } }).filter(
      ({ rule, path, message }) => {
        if (!["duplicate-guideline", "drift"].includes(rule)) return false;
        const [, other = ""] = / in ([^"]+):\d+[.,]/.exec(message) ?? [];
        return formats.get(other) !== formats.get(path);
      },
    );
    expect(repeats).toEqual([]);
  },
);
