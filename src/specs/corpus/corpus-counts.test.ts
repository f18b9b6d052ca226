import { describe, expect, test } from "vitest";
import type { SpecBlock } from "../../protocol/spec-block.ts";
import { blocksOfProject, type CorpusProject, hasCorpus, loadCorpus } from "../../testing/corpus.ts";
import { annotationsIn } from "../adapters/tessl/tessl-adapter.ts";
import { scanMarkdown } from "../markdown/scan-markdown.ts";

/**
 * The counts of EXPECTED.json were made with grep, awk and sed, so each is compared per project, and
 * a difference is a failure unless this table says what is in the file.
 */
const differences: readonly { project: string; metric: string; found: number; why: string }[] = [
  {
    project: "modular-godot",
    metric: "speckit.needs_clarification",
    found: 0,
    why: "The marker stands twice in each of three spec.md files: in line 50, 41 and 41 the template explains it, in line 106, 109 and 108 the checklist says that none remain. No requirement has it.",
  },
];

interface Counted {
  readonly blocks: readonly SpecBlock[];
  readonly project: CorpusProject;
}
type Count = (counted: Counted) => number;

const countBlocks =
  (accepts: (block: SpecBlock) => boolean): Count =>
  ({ blocks }) =>
    blocks.filter(accepts).length;

const countFiles =
  (pattern: RegExp): Count =>
  ({ blocks }) =>
    new Set(blocks.map(({ path }) => path).filter((path) => pattern.test(path))).size;

const isTask = ({ framework, spec_type }: SpecBlock): boolean => framework === "fw_d" && spec_type === "task";
const hasNumber =
  (prefix: string) =>
  ({ framework, metadata }: SpecBlock): boolean =>
    framework === "fw_d" && String(metadata.requirement).startsWith(prefix);
const givenLines = ({ blocks }: Counted): number =>
  blocks
    .filter(({ framework, tags }) => framework === "fw_d" && tags.includes("user-story"))
    .flatMap(({ metadata }) => metadata.ears_patterns ?? [])
    .filter(({ text }) => /^\*\*given\b/i.test(text)).length;

type Place = "spec" | "delta_open" | "delta_archived";
const placeOf = ({ metadata, tags }: SpecBlock): Place | undefined => {
  if (metadata.tool !== "openspec" || metadata.requirement === undefined) return undefined;
  if (metadata.document === "spec") return "spec";
  return tags.includes("archived") ? "delta_archived" : "delta_open";
};
const openspec = (place: Place): Record<string, Count> => ({
  [`openspec.${place}.requirements`]: countBlocks(
    (block) => placeOf(block) === place && block.metadata.listed !== true,
  ),
  [`openspec.${place}.scenarios`]: ({ blocks }) =>
    blocks
      .filter((block) => placeOf(block) === place)
      .reduce((sum, { metadata }) => sum + (metadata.acceptance_criteria?.length ?? 0), 0),
});
const sections = (place: Place): Record<string, Count> =>
  Object.fromEntries(
    ["ADDED", "MODIFIED", "REMOVED", "RENAMED"].map((word) => [
      `openspec.${place}.sections_${word}`,
      ({ blocks }: Counted) =>
        new Set(
          blocks
            .filter((block) => placeOf(block) === place && block.metadata.delta === word.toLowerCase())
            .map(({ path }) => path),
        ).size,
    ]),
  );

const annotations = (kind: string): Count => {
  return ({ project }) =>
    project.files
      .filter(({ path }) => path.endsWith(".spec.md"))
      .map(({ text }) => scanMarkdown(text))
      .flatMap((scan) => annotationsIn(scan, 1, scan.lineCount))
      .filter((annotation) => annotation.kind === kind).length;
};

const headings = (pattern: RegExp): Count => {
  return ({ project }) =>
    project.files
      .filter(({ path }) => pattern.test(path))
      .flatMap(({ text }) => scanMarkdown(text).headings)
      .filter(({ level }) => level <= 3).length;
};

const metrics: Readonly<Record<string, Count>> = {
  "files.cursorrules": countFiles(/\.cursorrules$/),
  "files.cursor_mdc": countFiles(/\.mdc$/),
  "files.claude_md": countFiles(/(?:^|\/)CLAUDE\.md$/),
  "files.claude_rules": countFiles(/\.claude\/rules\//),
  "files.speckit_spec": countFiles(/specs\/\d{3}[^/]*\/spec\.md$/),
  "files.speckit_plan": countFiles(/specs\/\d{3}[^/]*\/plan\.md$/),
  "files.speckit_tasks": countFiles(/specs\/\d{3}[^/]*\/tasks\.md$/),
  "files.speckit_constitution": countFiles(/\.specify\/memory\/constitution\.md$/),
  "files.openspec_spec": countFiles(/openspec\/specs\/.*spec\.md$/),
  "files.openspec_delta_spec_open": countFiles(/openspec\/changes\/(?!archive\/)[^/]+\/specs\/.*spec\.md$/),
  "files.openspec_delta_spec_archived": countFiles(/openspec\/changes\/archive\/.*\/specs\/.*spec\.md$/),
  "files.dot_spec_md": countFiles(/\.spec\.md$/),
  "speckit.user_story_headings": countBlocks(
    ({ metadata }) => String(metadata.story).startsWith("US") && metadata.task === undefined,
  ),
  "speckit.fr_definitions": countBlocks(hasNumber("FR-")),
  "speckit.sc_definitions": countBlocks(hasNumber("SC-")),
  "speckit.given_lines": givenLines,
  "speckit.tasks": countBlocks(isTask),
  "speckit.tasks_done": countBlocks((block) => isTask(block) && block.metadata.status === "done"),
  "speckit.tasks_parallel": countBlocks((block) => isTask(block) && block.metadata.parallel === true),
  ...openspec("spec"),
  ...openspec("delta_open"),
  ...openspec("delta_archived"),
  ...sections("delta_open"),
  ...sections("delta_archived"),
  "openspec.open_change_task_checkboxes": countBlocks(
    ({ metadata, tags }) =>
      metadata.document === "tasks" && metadata.tool === "openspec" && !tags.includes("archived"),
  ),
  "tessl.annotation_generate": annotations("generate"),
  "tessl.annotation_test": annotations("test"),
  "tessl.annotation_describe": annotations("describe"),
  "tessl.annotation_use": annotations("use"),
  "guide.cursorrules.headings_h1_h3": headings(/\.cursorrules$/),
  "guide.cursor_mdc.headings_h1_h3": headings(/\.mdc$/),
  "guide.claude_md.headings_h1_h3": headings(/(?:^|\/)CLAUDE\.md$/),
  "guide.claude_rules.headings_h1_h3": headings(/\.claude\/rules\/.*\.md$/),
  "guide.cursor_mdc.with_frontmatter": countBlocks(
    ({ path, metadata }) => path.endsWith(".mdc") && metadata.frontmatter !== undefined,
  ),
  "guide.cursorrules.with_frontmatter": countBlocks(
    ({ path, metadata }) => path.endsWith(".cursorrules") && metadata.frontmatter !== undefined,
  ),
  "guide.claude_rules.with_frontmatter": countBlocks(
    ({ path, metadata }) => path.includes(".claude/rules/") && metadata.frontmatter !== undefined,
  ),
  "speckit.needs_clarification": countBlocks(({ metadata }) => metadata.needs_clarification === true),
  "tessl.files_with_annotation": countFiles(/\.spec\.md$/),
};

describe.skipIf(!hasCorpus)("real repositories, against an independent count", () => {
  const counted = loadCorpus().map((project) => ({ project, blocks: blocksOfProject(project) }));

  test.each(Object.entries(metrics))("%s", (metric, count) => {
    const found = counted.flatMap(({ project, blocks }) => {
      const explained = differences.find((each) => each.project === project.name && each.metric === metric);
      const number = count({ project, blocks });
      const expected = explained?.found ?? project.expected[metric] ?? 0;
      return number === expected ? [] : [{ project: project.name, number, expected }];
    });
    expect(found).toEqual([]);
  });
});
