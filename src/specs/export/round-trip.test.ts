import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { assembleBlocks } from "../model/assemble-blocks.ts";
import { createSpecRegistry } from "../registry.ts";
import { exportSpecs } from "./export-specs.ts";

const registry = createSpecRegistry({ custom: [{ include: "notes/**", tags: ["note"] }] });

/** Pieces that mean something to one format or another, and what stands between them. */
const pieces = [
  "# Title",
  "## Section",
  "### Requirement: Pay",
  "### User Story 1 - Pay (Priority: P1)",
  "#### Scenario: Paid",
  "##",
  "## C #",
  "## A `b` [c](d.md)",
  "Title\n=====",
  "Title\n---",
  "## Capabilities",
  "## API",
  "## Target",
  "### Pay",
  "## ADDED Requirements",
  "## RENAMED Requirements",
  "## REMOVED Requirements",
  "## Requirements",
  "## Phase 1: Setup",
  "- FROM: `### Requirement: A`",
  "- TO: `### Requirement: B`",
  "- `### Requirement: C`",
  "- **FR-001**: System MUST pay",
  "* **SC-002**: fast",
  "- [ ] **FR-003**: x",
  "  - **FR-004**: nested",
  "1. **Given** a, **When** b, **Then** c",
  "- **WHEN** a",
  "- **THEN** b",
  "**Acceptance Scenarios**:",
  "- [ ] T001 [P] [US1] Do `src/a.ts`",
  "- [x] T002 x (FR-001)",
  "  - [ ] T003 nested",
  "  - [x] inner",
  "- [-] 1.1 half",
  "1. [ ] 2 numbered",
  "- item",
  "* item",
  "+ item",
  "1. item",
  "12) item",
  "  - nested",
  "    deep",
  "\tx",
  "  two",
  "-",
  "- - a",
  "- # b",
  "• bullet",
  "text",
  "a long line that ends with a colon and so introduces what stands below it:",
  "Label:",
  "**Bold**",
  "**Bold:**",
  "Words before a list",
  "[@generate](./a.ts)",
  "- does it [@test](./a.test.ts)",
  "`[@test] ../b.test.ts`",
  "[@use](pkg)",
  "```ts\ncode\n# no\n```",
  "```",
  "~~~",
  "  ```js\n  x\n  ```",
  "<div>",
  "</div>",
  "<!-- c -->",
  "<!--",
  "-->",
  "<script>",
  "---",
  "***",
  "===",
  "| a | b |",
  "> quote",
  "***x",
  "_Requirements: 1.1_",
  "",
  "",
  "",
  " ",
  "\t",
  "\r",
  "\u2028",
  "　",
  "日本語：",
];
const frontMatters = [
  "",
  "",
  "---\ndescription: d\nglobs: *.ts\n---\n",
  "---\nname: n\ntargets:\n  - ./a.ts\n---\n",
  "---\n---\n",
  "---\nid: x\ntags: a, b\npriority: high\nauthor: me\n---\n",
  "---\nx: [\n---\n",
  "---\n",
];
const text = fc
  .tuple(
    fc.constantFrom(...frontMatters),
    fc.array(fc.constantFrom(...pieces), { maxLength: 14 }),
    fc.constantFrom("\n", "\r\n"),
  )
  .map(([head, parts, end]) => (head + parts.join("\n")).replaceAll("\n", end));

const paths = [
  "CLAUDE.md",
  ".claude/rules/a.md",
  ".cursorrules",
  ".cursor/rules/a.mdc",
  "specs/001-a/spec.md",
  "specs/001-a/plan.md",
  "specs/001-a/tasks.md",
  ".specify/memory/constitution.md",
  "x.spec.md",
  "openspec/specs/a/spec.md",
  "openspec/specs/a/design.md",
  "openspec/changes/c/specs/a/spec.md",
  "openspec/changes/c/proposal.md",
  "openspec/changes/c/design.md",
  "openspec/changes/c/tasks.md",
  "notes/a.md",
];

describe("the blocks of every file read back the same after they are written", () => {
  test.each(paths)("%s", (path) => {
    const adapter = registry.adapterFor(path);
    fc.assert(
      fc.property(text, (source) => {
        const parsed = adapter?.parse({ path, text: source }) ?? { drafts: [], diagnostics: [] };
        const { blocks } = assembleBlocks([{ path, parsed }]);
        const { losses, files } = exportSpecs(blocks, adapter?.framework ?? "custom", registry);
        expect(losses, files[0]?.content).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });
});
