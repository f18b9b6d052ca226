import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { rounds } from "../../../testing/campaign.suite.ts";
import { exportSpecs } from "../../export/export-specs.ts";
import { assembleBlocks } from "../../model/assemble-blocks.ts";
import { kiroAdapter } from "./kiro-adapter.ts";

function blocksOf(path: string, text: string) {
  return assembleBlocks([{ path, parsed: kiroAdapter.parse({ path, text }) }]).blocks;
}

function written(document: string, text: string): string {
  const path = `.kiro/specs/auth/${document}.md`;
  const { files, losses } = exportSpecs(blocksOf(path, text), "fw_a");
  expect(losses).toEqual([]);
  return files.map(({ content }) => content).join("");
}

test("a plan is written as Kiro writes one", () => {
  const text = `# Implementation Plan

- [ ] 1. Set up
  - detail

  - [x] 1.1 Write
    - _Requirements: 1.1_

  - [-]* 1.2 (P) Test

- [~] 2. Wait

- [ ] Without a number
`;
  expect(written("tasks", text)).toBe(text);
});

test("requirements are written below headings that their own headings fit under", () => {
  const text = `# Requirements Document

## Requirements

### Requirement 1: A

**User Story:** As a user

#### Acceptance Criteria

1. WHEN a THEN b SHALL c

## Non-Functional Requirements

- fast
`;
  expect(written("requirements", text)).toBe(text);
  expect(
    written("requirements", "## Requirement 1\n### Acceptance Criteria\n1. a\n## Requirement 2\n"),
  ).toContain("\n## Requirement 1\n\n### Acceptance Criteria\n1. a\n\n## Requirement 2\n");
});

test("a design with sections and one without are written back", () => {
  const sections = "# Design Document\n\n## Overview\n\ntext\n\n### Sub\n\n## Empty\n";
  expect(written("design", sections)).toBe(sections);
  expect(written("design", "# Plan\n\ntext\n")).toBe("# Plan\n\ntext\n");
  expect(written("design", "text only\n")).toBe("# Design\n\ntext only\n");
});

test("a bug analysis is written back", () => {
  const text =
    "# Bugfix Requirements Document\n\n## Bug Analysis\n\n### Expected Behavior\n\n2.1 WHEN a THEN b SHALL c\n";
  expect(written("bugfix", text)).toBe(text);
});

test("blocks are written in the order of their source, each to its file", () => {
  const one = blocksOf(".kiro/specs/b/tasks.md", "- [ ] 1. A\n- [ ] 2. B\n");
  const other = blocksOf(".kiro/specs/a/design.md", "## A\n");
  const { files } = kiroAdapter.write?.([...one].reverse().concat(other)) ?? { files: [] };
  expect(files.map(({ path }) => path)).toEqual([".kiro/specs/a/design.md", ".kiro/specs/b/tasks.md"]);
  expect(files[1]?.content).toBe("# Implementation Plan\n\n- [ ] 1. A\n\n- [ ] 2. B\n");
});

describe("any document reads back as the same blocks", () => {
  const requirements = `# Requirements Document
## Requirements
### Requirement 1: A
### Requirement 2
## Requirement 3: B
### 要件4：あ
### Login
#### Acceptance Criteria
### Acceptance Criteria
**Acceptance Criteria:**
**User Story:** As a user
> **User Story:** q
#### User Story
continues
1. WHEN a THEN b SHALL c
2. THE x SHALL y
1.1 The X shall y
- bullet
- THE z SHALL w
   - nested
   more
\tmore
<div>
<!-- c -->
\`\`\`
***

`;
  const constraints = `# Requirements Document
## Requirements
### Requirement 1: A
## Non-Functional Requirements
### Constraints
## 制約
### Other
1. THE x SHALL y
text
\`\`\`
---

`;
  const bugfix = `# Bugfix
### Current Behavior (Defect)
### Expected Behavior (Correct)
## Expected Behavior
### Unchanged Behavior
#### sub
1.1 WHEN a THEN b
2.1 WHEN a THEN b SHALL c
3.1 x
**2.2** y
text
\`\`\`

`;
  const design = `# Design
## Overview
## Data
### Sub
#### x
# Other
text
**Validates: Requirements 1.1**
\`src/a.ts\`
\`\`\`
<!--
-->
---

`;
  const tasks = `# Plan
## Phase
#### - [ ] 1.1 B
- [ ] 1. A
- [x] 1.1 B
  - [-] 1.2 C
  - [~]* 2. D
    - [ ] E
- [?] odd
- [ ] (P) F
- [ ] 3 (P) G
- [ ] **4. H**
- [ ] 1.
\t- [ ] tab
\t\ttab detail
- plain
  - detail
    deeper
  lazy
text
  _Requirements: 1.1, 2.3_
      # x
    ---
    <div>
  \`\`\`
\`\`\`
---
- [ ] ${"long ".repeat(80)}

`;

  test.each([
    ["requirements", "requirements", requirements],
    ["requirements with constraints", "requirements", constraints],
    ["bugfix", "bugfix", bugfix],
    ["design", "design", design],
    ["tasks", "tasks", tasks],
  ])("%s", (_name, document, vocabulary) => {
    const lines = vocabulary.split("\n");
    const path = `.kiro/specs/auth/${document}.md`;
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...lines), { maxLength: 16 }),
        fc.constantFrom("\n", "\r\n"),
        (parts, end) => {
          const text = parts.join(end);
          // An unclosed part takes in all the text behind it.
          fc.pre(
            !kiroAdapter.parse({ path, text }).diagnostics.some(({ code }) => code?.endsWith("_unclosed")),
          );
          const blocks = blocksOf(path, text);
          expect(new Set(blocks.map(({ id }) => id)).size).toBe(blocks.length);
          expect(blocks.filter(({ title, content }) => title.trim() === "" || content.trim() === "")).toEqual(
            [],
          );
          expect(exportSpecs(blocks, "fw_a").losses).toEqual([]);
        },
      ),
      { numRuns: rounds(150, 1_500) },
    );
  });
});

test("any text is read without an error", () => {
  fc.assert(
    fc.property(
      fc.string({
        unit: fc.constantFrom(
          ..."#-*[]x 1.\n\r\t`<>!_:WHENSHALL要件",
          "\u0000",
          "- [ ] ",
          "### Requirement 1",
        ),
      }),
      fc.constantFrom("requirements", "bugfix", "design", "tasks"),
      (text, document) => {
        kiroAdapter.parse({ path: `.kiro/specs/a/${document}.md`, text });
      },
    ),
  );
});
