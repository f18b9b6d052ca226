import { describe, expect, test } from "vitest";
import { type CorpusProject, hasCorpus, loadCorpus } from "../../../testing/corpus.ts";
import type { ParsedSpecs, SpecDraft } from "../../adapter.ts";
import { exportSpecs } from "../../export/export-specs.ts";
import { assembleBlocks } from "../../model/assemble-blocks.ts";
import { kiroAdapter } from "./kiro-adapter.ts";

/**
 * Where the adapter finds more or less than the independent count of EXPECTED.json (grep and awk),
 * after a look at each file. Any other difference is a failure.
 */
const differences: readonly { project: string; metric: string; found: number; reason: string }[] = [
  {
    project: "api-scanner",
    metric: "task_requirement_ref_lines",
    found: 19,
    reason:
      'performance-optimization/tasks.md:198, 215, 222 say "All performance-related requirements" and the like, which name none; each is told.',
  },
  {
    project: "card-view-explorer",
    metric: "task_numbered",
    found: 97,
    reason:
      "The eight groups of responsive-card-layout/tasks.md (lines 12 to 54) have their number in bold (`- [ ] **1. File Renaming**`), which the count does not look for.",
  },
  {
    project: "card-view-explorer",
    metric: "task_requirement_ref_lines",
    found: 74,
    reason: 'responsive-card-layout/tasks.md:70 says "Maintainability improvement" and names no number.',
  },
  {
    project: "cc-sdd",
    metric: "task_requirement_ref_lines",
    found: 102,
    reason:
      'photo-albums-en/tasks.md:29, 114, 122, 232 say "Key workflow validation" and the like, which name none; each is told.',
  },
  {
    project: "daemoneye",
    metric: "task_requirement_ref_lines",
    found: 103,
    reason: 'tasks.md:930 says "All performance requirements verification" and is told.',
  },
  {
    project: "dynamodb-client",
    metric: "task_requirement_ref_lines",
    found: 216,
    reason: "165 lines write the label in Japanese (`_要件: 3.5_`); the count looks for the English one.",
  },
  {
    project: "llmmanager",
    metric: "design_validates_lines",
    found: 77,
    reason:
      "A section that validates a criterion twice is linked to it once: fix-integration-test-models/design.md:269, inference-profile-support/design.md:458, token-usage-key-inconsistency/design.md:365.",
  },
  {
    project: "dynamodb-client",
    metric: "design_validates_lines",
    found: 4,
    reason:
      "ainews-pipeline/design.md:4658, 4664, 4670, 4676 write the label in Japanese (`**検証: 要件17.8**`); the count looks for the English one.",
  },
  {
    project: "specmem",
    metric: "design_validates_lines",
    found: 205,
    reason: "static-dashboard-deploy/design.md:269 names a criterion that its section has named before.",
  },
];

interface ReadProject {
  readonly project: CorpusProject;
  readonly files: readonly { path: string; parsed: ParsedSpecs }[];
  readonly drafts: readonly SpecDraft[];
}

const linkLines = (drafts: readonly SpecDraft[], kind: string): number =>
  drafts.reduce(
    (sum, { links }) =>
      sum + new Set(links.filter((link) => link.kind === kind).map(({ line }) => line)).size,
    0,
  );

const count = (drafts: readonly SpecDraft[], accepts: (draft: SpecDraft) => boolean): number =>
  drafts.filter(accepts).length;

const metrics: Readonly<Record<string, (drafts: readonly SpecDraft[]) => number>> = {
  requirement_headings_any: (drafts) => count(drafts, ({ spec_type }) => spec_type === "requirement"),
  user_story_lines: (drafts) => count(drafts, ({ metadata }) => metadata.user_story !== undefined),
  criteria_numbered_under_acceptance: (drafts) =>
    drafts
      .filter(({ spec_type }) => spec_type === "requirement")
      .reduce((sum, { metadata }) => sum + (metadata.acceptance_criteria?.length ?? 0), 0),
  design_h2: (drafts) => count(drafts, ({ spec_type }) => spec_type === "design"),
  design_validates_lines: (drafts) =>
    linkLines(
      drafts.filter(({ spec_type }) => spec_type === "design"),
      "validates",
    ),
  task_checkboxes: (drafts) => count(drafts, ({ spec_type }) => spec_type === "task"),
  task_done: (drafts) => count(drafts, ({ metadata }) => metadata.status === "done"),
  task_in_progress_dash: (drafts) => count(drafts, ({ metadata }) => metadata.status === "in_progress"),
  task_queued_tilde: (drafts) => count(drafts, ({ metadata }) => metadata.state === "~"),
  task_optional_star: (drafts) => count(drafts, ({ metadata }) => metadata.optional === true),
  task_numbered: (drafts) =>
    count(drafts, ({ spec_type, metadata }) => spec_type === "task" && metadata.number !== undefined),
  task_requirement_ref_lines: (drafts) =>
    linkLines(
      drafts.filter(({ spec_type }) => spec_type === "task"),
      "implements",
    ),
};

/** EARS statements of the numbered criteria, by first keyword, as the adapter names their form. */
const forms = {
  WHEN: "event_driven",
  WHILE: "state_driven",
  IF: "unwanted_behavior",
  WHERE: "optional_feature",
};

describe.skipIf(!hasCorpus)("the Kiro documents of real repositories", () => {
  const read: ReadProject[] = loadCorpus()
    .map((project) => {
      const files = project.files
        .filter(({ path }) => kiroAdapter.matches(path))
        .map(({ path, text }) => ({ path, parsed: kiroAdapter.parse({ path, text }) }));
      return { project, files, drafts: files.flatMap(({ parsed }) => parsed.drafts) };
    })
    .filter(({ files }) => files.length > 0);
  const withName = read.map((one) => [one.project.name, one] as const);

  test.each(Object.entries(metrics))(
    "%s are as many as counted independently, or it is explained",
    (metric, measure) => {
      const unexplained = read.flatMap(({ project, drafts }) => {
        const explained = differences.find((one) => one.project === project.name && one.metric === metric);
        const expected = explained?.found ?? project.expected[`kiro.${metric}`] ?? 0;
        const found = measure(drafts);
        return found === expected ? [] : [{ project: project.name, found, expected }];
      });
      expect(unexplained).toEqual([]);
    },
  );

  test("every explanation is about a difference", () => {
    for (const { project, metric, found, reason } of differences) {
      const expected = read.find((one) => one.project.name === project)?.project.expected[`kiro.${metric}`];
      expect(found, `${project} ${metric}: ${reason}`).not.toBe(expected);
    }
  });

  test("the forms of criteria are at least those that the count finds by keyword and SHALL", () => {
    for (const { project, drafts } of read) {
      const patterns = drafts
        .flatMap(({ metadata }) => metadata.ears_patterns ?? [])
        .map(({ pattern }) => pattern);
      for (const [keyword, form] of Object.entries(forms)) {
        const found = patterns.filter((pattern) => pattern === form || pattern === "complex").length;
        const expected = project.expected[`kiro.ears_any_case.${keyword}`] ?? 0;
        expect(found, `${project.name} ${keyword}`).toBeGreaterThanOrEqual(expected);
      }
    }
  });

  test.each(withName)("%s: ids are unique, and the same when read again", (_name, { files }) => {
    const { blocks } = assembleBlocks(files);
    const ids = blocks.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(assembleBlocks([...files].reverse()).blocks.map(({ id }) => id)).toEqual(ids);
  });

  test.each(withName)(
    "%s: every block has text, and lies where its lines say",
    (_name, { project, files }) => {
      for (const { path, parsed } of files) {
        const lines = project.files.find((file) => file.path === path)?.text.split(/\r\n|\n|\r/) ?? [];
        for (const { title, content, span, metadata } of parsed.drafts) {
          expect(title.trim() === "" || content.trim() === "", `${path}:${span.start_line}`).toBe(false);
          expect(lines[span.start_line - 1], `${path}:${span.start_line}`).toContain(title.replace(/…$/, ""));
          expect(span.end_line).toBeLessThanOrEqual(lines.length);
          for (const entry of metadata.ears_patterns ?? []) {
            expect(lines[entry.line - 1]?.replaceAll("*", ""), `${path}:${entry.line}`).toContain(
              entry.text.slice(0, 8).replaceAll("*", ""),
            );
          }
        }
      }
    },
  );

  test.each(withName)(
    "%s: its blocks, written as Kiro's files, read back the same",
    (_name, { files, project }) => {
      const paths = new Set(project.files.map(({ path }) => path));
      const exists = (path: string): boolean => paths.has(path);
      const { blocks } = assembleBlocks(files, exists);
      const { files: written, losses } = exportSpecs(blocks, "fw_a");
      const again = written.map(({ path, content }) => ({
        path,
        parsed: kiroAdapter.parse({ path, text: content }),
      }));
      expect(losses).toEqual([]);
      expect(assembleBlocks(again, exists).blocks.map(withoutLines)).toEqual(blocks.map(withoutLines));
    },
  );
});

/** A block without the lines it came from: a written file has no introduction. */
function withoutLines(block: ReturnType<typeof assembleBlocks>["blocks"][number]): unknown {
  const { source: _source, ears_patterns, ...metadata } = block.metadata;
  return { ...block, metadata, criteria: ears_patterns?.map(({ line: _line, ...entry }) => entry) };
}
