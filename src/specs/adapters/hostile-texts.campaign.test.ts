import { describe, expect, test } from "vitest";
import { isCampaign } from "../../testing/campaign.suite.ts";
import { processorMs } from "../../testing/processor-time.ts";
import { createSpecRegistry } from "../registry.ts";

const registry = createSpecRegistry({ custom: [{ include: "notes/**" }] });
const paths = [
  "CLAUDE.md",
  ".cursorrules",
  ".cursor/rules.json",
  ".cursor/rules/a.mdc",
  "specs/001-a/spec.md",
  "specs/001-a/plan.md",
  "specs/001-a/tasks.md",
  ".specify/memory/constitution.md",
  "x.spec.md",
  "openspec/specs/a/spec.md",
  "openspec/changes/c/specs/a/spec.md",
  "openspec/changes/c/tasks.md",
  "openspec/changes/c/proposal.md",
  "notes/a.md",
  "notes/a.json",
  "notes/a.jsonl",
  "notes/a.yaml",
];
/** The text before the repeated part, so that each reader is inside of something. */
const openings = [
  "",
  "---\ntargets: [a]\n---\n## Capabilities\n### A\n",
  "### User Story 1\n**Acceptance Scenarios**:\n1. ",
];
const repeated = [
  "\n",
  " ",
  "- ",
  "- a\n",
  "  - [ ] T001 a\n",
  "## a\n",
  "### Requirement: a\n#### Scenario: b\n- **WHEN** c\n",
  "### User Story 1 - a\n- **FR-001**: a\n",
  "[@test](./a.ts) ",
  "[@test](",
  "**",
  "**a:**\n",
  "`",
  "a/b.c ",
  "FR-001..FR-999 ",
  "**Given** ",
  "<!-- ",
  "<div>\n",
  "```\n",
  "[P] ",
  '{"rules":',
  '"\\',
  "&a *a ",
];
const length = 80_000;

// Twice the length of each takes twice the time; what takes the square of it would take minutes.
describe("every adapter parses every repeated text quickly and without an exception", () => {
  test.each(paths)("%s", (path) => {
    const adapter = registry.adapterFor(path);
    const slow: string[] = [];
    for (const opening of openings) {
      for (const [index, part] of repeated.entries()) {
        // An ordinary run puts each part behind one of the openings.
        if (!isCampaign && openings[index % openings.length] !== opening) continue;
        const text = opening + part.repeat(Math.ceil(length / part.length));
        const start = processorMs();
        const { diagnostics } = adapter?.parse({ path, text }) ?? { diagnostics: [] };
        if (processorMs() - start > 2000) slow.push(opening + part);
        expect(diagnostics.length).toBeLessThan(length);
      }
    }
    expect(slow).toEqual([]);
  });
});
