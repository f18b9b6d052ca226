import type { Diagnostic } from "../../protocol/diagnostic.ts";
import { lineOfKey, readFrontMatter } from "../../specs/markdown/front-matter.ts";
import { type GuidelineRecord, nameOf } from "../guideline-record.ts";
import { matches, toolTable } from "../tools/tool-table.ts";
import { type LintProject, warningAbout } from "./finding.ts";

/** Guidelines that another file or their own front matter keeps from having an effect, in part or whole. */
export function findIneffective(records: readonly GuidelineRecord[], project: LintProject): Diagnostic[] {
  const files = new Set(records.map((record) => record.source_file));
  const lineOf = (record: GuidelineRecord, key: string): number => {
    const scan = project.scanOf(record.source_file);
    return scan === undefined ? record.span.start_line : lineOfKey(readFrontMatter(scan).raw, key);
  };
  const asked = records.filter(project.isAsked);
  return [
    ...asked.flatMap((record) => [...overridden(record, files), ...ignoredGlobs(record, lineOf)]),
    ...oversizedFiles(asked),
  ];
}

function overridden(record: GuidelineRecord, files: ReadonlySet<string>): Diagnostic[] {
  if (record.tool !== "agents" || record.position > 0) return [];
  const override = record.source_file.replace(/(^|\/)AGENTS\.md$/, "$1AGENTS.override.md");
  if (override === record.source_file || !files.has(override)) return [];
  const message = `Codex does not read this file: ${override} replaces it.`;
  return [warningAbout(record, { rule: "shadowed", code: "agents_override", message })];
}

/** Globs of every file, which Cursor's editor writes next to `alwaysApply: true`. */
const everyFile = /^(?:\.\/)?\*(?:\*?(?:\/\*(?:\.\*)?)?|\.\*)$/;

function ignoredGlobs(
  record: GuidelineRecord,
  lineOf: (record: GuidelineRecord, key: string) => number,
): Diagnostic[] {
  const isIgnored = record.tool === "cursor" && record.inclusion === "always" && record.globs.length > 0;
  // The sections of a .cursorrules share its front matter; it is reported for the first one.
  if (!isIgnored || record.position > 0 || record.globs.every((glob) => everyFile.test(glob))) return [];
  const cause = record.source_file.endsWith(".mdc")
    ? "alwaysApply is true, so the rule is always loaded"
    : "Cursor reads no front matter in .cursorrules, and always loads it";
  const message = `The globs have no effect: ${cause}.`;
  return [
    warningAbout(
      record,
      { rule: "shadowed", code: "globs_ignored", message },
      { line: lineOf(record, "globs") },
    ),
  ];
}

/** Whether a file that a tool reads on the way to the file at work is part of a skill, which reads the file itself. */
function isPartOfSkill(files: string, name: string): boolean {
  return !files.includes("/") && /(?:^|\/)skills\//.test(name);
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
        const isRead = (name: string): boolean => matches(`**/${files}`, name) && !isPartOfSkill(files, name);
        if (!names.some(isRead)) return [];
        const size = unit === "bytes" ? new TextEncoder().encode(text).length : text.length;
        if (size <= max) return [];
        const message = `${label} reads ${max.toLocaleString("en")} ${unit} of ${files}; this file has about ${size.toLocaleString("en")}.`;
        return [warningAbout(first, { rule: "limit", code: "tool_limit", message }, { line: 1 })];
      }),
    );
  });
}
