import { beforeAll, describe, expect, test } from "vitest";
import type { ConversionFormat } from "../protocol/guideline.ts";
import { type CorpusProject, hasSharedCorpus, loadSharedCorpus } from "../testing/shared-corpus.ts";
import { exportGuidelines } from "./convert/conversion-targets.ts";
import { convertGuideline, sourceOf } from "./convert/convert-guideline.ts";
import { filePatternOf, type GuidelineRecord } from "./guideline-record.ts";
import { guidelineAdapterFor, readGuidelines } from "./read-guidelines.ts";

interface GuidelineFile {
  readonly project: string;
  readonly path: string;
  readonly adapter: string;
  readonly text: string;
  readonly bytes: Buffer;
  readonly records: readonly GuidelineRecord[];
  readonly codes: readonly string[];
}

const files: GuidelineFile[] = [];
let projects: readonly CorpusProject[] = [];

beforeAll(async () => {
  if (!hasSharedCorpus) return;
  projects = await loadSharedCorpus();
  for (const project of projects) {
    for (const [path, { text, bytes }] of project.files) {
      const adapter = guidelineAdapterFor(path)?.name;
      if (adapter === undefined) continue;
      const { records, diagnostics } = readGuidelines({ path, text });
      const codes = diagnostics.map((diagnostic) => diagnostic.code ?? diagnostic.rule);
      files.push({ project: project.name, path, adapter, text, bytes, records, codes });
    }
  }
});

describe.skipIf(!hasSharedCorpus)("the guidelines of real repositories", () => {
  test.each([
    ["files.steering", "kiro-steering", () => true],
    ["files.cursorrules", "cursorrules", () => true],
    ["files.cursor_mdc", "cursor-rules", () => true],
    ["files.claude_md", "claude", () => true],
    ["files.claude_rules", "claude-rules", () => true],
    ["files.agents_md", "agents", () => true],
    ["guide.steering.with_frontmatter", "kiro-steering", hasFrontMatter],
    ["guide.cursor_mdc.with_frontmatter", "cursor-rules", hasFrontMatter],
    ["guide.cursorrules.with_frontmatter", "cursorrules", hasFrontMatter],
    ["guide.claude_rules.with_frontmatter", "claude-rules", hasFrontMatter],
    ["steering.inclusion_always", "kiro-steering", (file) => declares(file, "inclusion", "always")],
    ["steering.inclusion_fileMatch", "kiro-steering", (file) => inclusionOf(file) === "pattern"],
    ["steering.inclusion_manual", "kiro-steering", (file) => inclusionOf(file) === "manual"],
    ["steering.inclusion_auto", "kiro-steering", (file) => inclusionOf(file) === "auto"],
    ["steering.no_frontmatter", "kiro-steering", (file) => !hasFrontMatter(file)],
    ["cursor.type_always", "cursor-rules", (file) => inclusionOf(file) === "always"],
    ["cursor.type_auto_globs", "cursor-rules", (file) => inclusionOf(file) === "pattern"],
    ["cursor.type_agent_description", "cursor-rules", (file) => inclusionOf(file) === "auto"],
    ["cursor.type_manual", "cursor-rules", (file) => inclusionOf(file) === "manual"],
    ["claude_rules.with_paths", "claude-rules", (file) => inclusionOf(file) === "pattern"],
  ] as const satisfies readonly (readonly [string, string, (file: GuidelineFile) => boolean])[])(
    "%s is the independent count, in every project",
    (metric, adapter, counts) => {
      for (const project of projects) {
        const own = files.filter((file) => file.project === project.name && file.adapter === adapter);
        expect({ project: project.name, count: own.filter(counts).length }).toEqual({
          project: project.name,
          count: project.expected[metric] ?? 0,
        });
      }
    },
  );

  test("rules files are one guideline each, and no file with text is without one", () => {
    const wholeFiles = new Set(["kiro-steering", "cursor-rules", "claude-rules"]);
    for (const file of files) {
      if (wholeFiles.has(file.adapter)) expect([file.path, file.records.length]).toEqual([file.path, 1]);
      else if (file.text.trim() !== "")
        expect([file.path, file.records.length > 0]).toEqual([file.path, true]);
    }
  });

  test("no front matter is rejected, and the only complaints are these", () => {
    const complaints = files.flatMap((file) =>
      file.codes.map((code) => `${file.project}/${file.path}: ${code}`),
    );
    expect(complaints.sort()).toEqual([
      // Line 114 opens a fence at the end of the text, and nothing closes it.
      "cursorrules-a/rules/cypress-integration-testing-cursorrules-prompt-file/.cursorrules: fence_unclosed",
      // The file has no bytes.
      "openspec/AGENTS.md: empty_file",
      // A fence within a fence of the same length: the last one opens, and nothing closes it.
      "powershell/.github/instructions/instruction-file-format.instructions.md: fence_unclosed",
    ]);
  });

  test("every second-level heading outside fences is a guideline of a sectioned file", () => {
    const differences: string[] = [];
    for (const file of files) {
      if (!["claude", "cursorrules", "agents"].includes(file.adapter)) continue;
      const lines = file.text.split(/\r\n|\n|\r/);
      const counted = withoutFences(lines).filter((line) => line.startsWith("## ")).length;
      const read = file.records.filter(({ span }) => lines[span.start_line - 1]?.startsWith("## ")).length;
      if (counted !== read)
        differences.push(`${file.project}/${file.path}: ${counted} counted, ${read} read`);
    }
    expect(differences).toEqual([]);
  });

  test("ids are unique in every project, and the same on a second reading", () => {
    for (const project of projects) {
      const own = files.filter((file) => file.project === project.name);
      const ids = own.flatMap((file) => file.records.map((record) => record.id));
      expect(new Set(ids).size).toBe(ids.length);
      const again = own.flatMap(({ path, text }) =>
        readGuidelines({ path, text }).records.map((record) => record.id),
      );
      expect(again).toEqual(ids);
    }
  });

  test("every declared pattern is read, none is invented, and conversions keep them", () => {
    let declaredCount = 0;
    for (const file of files) {
      const declared = declaredPatterns(file.text);
      declaredCount += declared.length;
      for (const record of file.records) {
        expect([file.path, record.globs]).toEqual([file.path, declared]);
        const steering = convertGuideline(record, "steering");
        expect([steering.frontmatter.fileMatchPattern ?? []].flat()).toEqual(declared);
        for (const [format, path] of [
          ["steering", ".kiro/steering/x.md"],
          ["fw_c", "CLAUDE.md"],
          ["fw_b", ".cursorrules"],
        ] as const) {
          const [again] = readGuidelines({ path, text: convertGuideline(record, format).content }).records;
          expect([again?.title, again?.content, again && filePatternOf(again)]).toEqual([
            record.title,
            record.content,
            filePatternOf(record),
          ]);
        }
      }
    }
    expect(declaredCount).toBeGreaterThan(100);
  });

  test("a conversion to the same format is the source, byte for byte", () => {
    for (const file of files) {
      const sourceText = file.bytes.toString("utf8");
      for (const record of file.records) {
        if (record.source_type === "agents" || record.source_type === "sample") continue;
        const format: ConversionFormat = record.source_type;
        const { content, losses } = convertGuideline(record, format, { sourceText });
        expect(losses).toEqual([]);
        if (record.whole_file) expect(Buffer.from(content, "utf8").equals(file.bytes)).toBe(true);
        else {
          expect(content).toBe(sourceOf(record, sourceText));
          expect(sourceText).toContain(content);
          expect(content).toContain(record.content);
        }
      }
    }
  });

  test("sections and the text between them make up the whole text", () => {
    for (const file of files) {
      const lines = file.text.split(/\r\n|\n|\r/);
      const covered = new Set<number>();
      for (const { span } of file.records)
        for (let line = span.start_line; line <= span.end_line; line += 1) covered.add(line);
      const left = lines.filter((_, index) => !covered.has(index + 1));
      // Headings, rules, front matter and blank lines belong to no section.
      const said = withoutFrontMatter(left).filter((line) => !/^(?:#.*|[-*_ \t]*|<!--.*)$/.test(line));
      expect([file.path, said]).toEqual([file.path, []]);
    }
  });

  test("an export of each project reads back the same", () => {
    for (const project of projects) {
      const records = files.filter((file) => file.project === project.name).flatMap((file) => file.records);
      if (records.length === 0) continue;
      const { filename, content } = exportGuidelines(records, "fw_c", project.name);
      const again = readGuidelines({ path: filename, text: content }).records;
      expect(again.map((record) => [record.title, record.content, filePatternOf(record)])).toEqual(
        records.map((record) => [record.title, record.content, filePatternOf(record)]),
      );
    }
  });
});

function inclusionOf(file: GuidelineFile): string | undefined {
  return file.records[0]?.inclusion;
}

function hasFrontMatter(file: GuidelineFile): boolean {
  return /^---[ \t]*[\r\n]/.test(file.text);
}

function declares(file: GuidelineFile, key: string, value: string): boolean {
  return file.records[0]?.frontmatter[key] === value;
}

/** The patterns of a front matter, read by nothing that kit reads them with. */
function declaredPatterns(text: string): string[] {
  const block = /^---[ \t]*\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n|$)/.exec(text)?.[1] ?? "";
  const found =
    /^(?:globs|paths|fileMatchPattern|applyTo):[ \t]*(.*(?:\r?\n[ \t]*- .*)*)/m.exec(block)?.[1] ?? "";
  const items = found.includes("\n")
    ? found.split(/\r?\n[ \t]*- /)
    : found.replace(/^\[|\]$/g, "").split(/,(?![^{]*\})/);
  return items.map((item) => item.trim().replace(/^["']|["']$/g, "")).filter((item) => item !== "");
}

function withoutFrontMatter(lines: readonly string[]): readonly string[] {
  if (lines[0]?.trim() !== "---") return lines;
  return lines.slice(lines.indexOf("---", 1) + 1);
}

/** The rule of the independent count: any indent opens, a bare fence of the same kind closes. */
function withoutFences(lines: readonly string[]): string[] {
  const kept: string[] = [];
  let open = "";
  for (const line of lines) {
    const fence = /^[ \t]*(`{3,}|~{3,})/.exec(line)?.[1];
    if (open === "" && fence === undefined) kept.push(line);
    else if (open === "") open = fence ?? "";
    else if (fence?.startsWith(open) && line.trim() === fence) open = "";
  }
  return kept;
}
