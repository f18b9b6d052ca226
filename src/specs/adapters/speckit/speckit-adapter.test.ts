import { expect, test } from "vitest";
import { speckitAdapter } from "./speckit-adapter.ts";

const parse = (file: string, text: string) =>
  speckitAdapter.parse({ path: `specs/027-cart/${file}`, text }).drafts;

test("it reads numbered feature folders at any depth, and the constitution", () => {
  const paths = [
    "specs/001-cart/spec.md",
    "web/specs/001-cart/plan.md",
    ".specify/specs/20260101-cart/tasks.md",
    ".specify/memory/constitution.md",
  ];
  expect(paths.filter((path) => !speckitAdapter.matches(path))).toEqual([]);
  const others = [
    "specs/cart/spec.md",
    "specs/001-cart/research.md",
    "specs/001-cart/contracts/spec.md",
    ".kiro/specs/001-cart/tasks.md",
    "openspec/specs/001-cart/spec.md",
    "memory/constitution.md",
  ];
  expect(others.filter((path) => speckitAdapter.matches(path))).toEqual([]);
});

test("a user story is a requirement with its scenarios as criteria", () => {
  const [story, ...rest] = parse(
    "spec.md",
    `# Feature

## User Scenarios

### User Story 2 - Pay a cart (Priority: P1)

A buyer pays
their cart.

**Why this priority**: money.

**Acceptance Scenarios**:

1. **Given** a cart, **When** it is paid, **Then** an order exists
   and a mail is sent.
2. The total is shown.

---

### Edge Cases

- What if it is empty?
`,
  );
  expect(rest).toEqual([]);
  expect(story).toMatchObject({
    id: { kind: "base", value: "fw_d-027-cart-us2" },
    spec_type: "requirement",
    title: "User Story 2 - Pay a cart (Priority: P1)",
    tags: ["fw_d", "027-cart", "user-story"],
    priority: "high",
    span: { start_line: 5, end_line: 16 },
    feature: "specs/027-cart",
    metadata: {
      story: "US2",
      user_story: "A buyer pays their cart.",
      acceptance_criteria: [
        {
          pattern: "complex",
          trigger: "given a cart, when it is paid",
          response: "an order exists and a mail is sent.",
        },
        { pattern: "unclassified", trigger: "", response: "The total is shown." },
      ],
      ears_patterns: [
        { line: 14, number: "2.1" },
        { line: 16, number: "2.2" },
      ],
    },
  });
  expect(story?.content.endsWith("2. The total is shown.")).toBe(true);
});

test("the only story of the older template has the scenarios of the section after it", () => {
  const text =
    "### Primary User Story\nAs a user I save.\n\n### Acceptance Scenarios\n1. **Given** a, **When** b, **Then** c\n\n### Edge Cases\n- d\n";
  expect(parse("spec.md", text)).toMatchObject([
    {
      id: { value: "fw_d-027-cart-primary-user-story" },
      metadata: { user_story: "As a user I save.", acceptance_criteria: [{ response: "c" }] },
      span: { start_line: 1, end_line: 5 },
    },
  ]);
});

test("numbered statements are requirements with their continuation, section and open questions", () => {
  const text = `## Requirements
### Totals
- **FR-001**: System MUST show a total
  in euro.
  - with cents
- **FR-001a**: When a cart is empty, the system MUST say so [NEEDS CLARIFICATION: how?]
* **NFR-002:** fast
- FR-003 is not defined here
## Success Criteria
- **SC-001**: 9 of 10 buyers pay.
`;
  expect(
    parse("spec.md", text).map(({ id, title, content, metadata, span }) => [
      id.kind === "base" && id.value,
      title,
      content,
      metadata.section,
      metadata.ears_patterns?.[0]?.pattern,
      metadata.needs_clarification === true,
      span.end_line,
    ]),
  ).toEqual([
    [
      "fw_d-027-cart-fr-001",
      "FR-001: System MUST show a total in euro.",
      "**FR-001**: System MUST show a total\nin euro.\n- with cents",
      "Totals",
      "ubiquitous",
      false,
      5,
    ],
    [
      "fw_d-027-cart-fr-001a",
      "FR-001a: When a cart is empty, the system MUST say so [NEEDS CLARIFICATION: how?]",
      "**FR-001a**: When a cart is empty, the system MUST say so [NEEDS CLARIFICATION: how?]",
      "Totals",
      "event_driven",
      true,
      6,
    ],
    ["fw_d-027-cart-nfr-002", "NFR-002: fast", "**NFR-002:** fast", "Totals", "unclassified", false, 7],
    [
      "fw_d-027-cart-sc-001",
      "SC-001: 9 of 10 buyers pay.",
      "**SC-001**: 9 of 10 buyers pay.",
      "Success Criteria",
      "unclassified",
      false,
      10,
    ],
  ]);
});

test("each section of a plan is a design", () => {
  const text = "# Plan\n\n**Branch**: x\n\n## Summary\n\nAll of it.\n\n### Detail\n\nMore.\n\n## Empty\n";
  expect(parse("plan.md", text)).toMatchObject([
    {
      id: { value: "fw_d-027-cart-plan-summary" },
      spec_type: "design",
      content: "All of it.\n\n### Detail\n\nMore.",
      metadata: { level: 2, parents: [{ level: 1, title: "Plan" }] },
    },
    { id: { value: "fw_d-027-cart-plan-empty" }, content: "Empty" },
  ]);
});

test("a task has its state, flags, phase, links and files", () => {
  const text = `## Phase 3: Story
### Tests for it
- [X] T012 [P] [US2] Test the total in \`src/total.test.ts\` (FR-001..FR-003, SC-001)
  and in src/cart/total.ts.
  - [ ] with cents
- [ ] **T013** Plain
## Checklist
- [x] Not a task
`;
  const [first, second, ...rest] = parse("tasks.md", text);
  expect(rest).toEqual([]);
  expect(first).toMatchObject({
    id: { kind: "base", value: "fw_d-027-cart-t012" },
    spec_type: "task",
    title: "T012 Test the total in `src/total.test.ts` (FR-001..FR-003, SC-001) and in src/cart/total.ts.",
    metadata: {
      status: "done",
      task: "T012",
      parallel: true,
      story: "US2",
      phase: "Phase 3: Story",
      section: "Tests for it",
      criteria: ["FR-001", "FR-002", "FR-003", "SC-001", "US2"].map((code) => `027-cart#${code}`),
    },
    span: { start_line: 3, end_line: 5 },
    links: ["us2", "fr-001", "fr-002", "fr-003", "sc-001"].map((code) => ({
      kind: "implements",
      target: `fw_d-027-cart-${code}`,
      line: 3,
    })),
    mentions: [
      { path: "src/total.test.ts", line: 3 },
      { path: "src/cart/total.ts", line: 4 },
    ],
  });
  expect(first?.content.endsWith("src/cart/total.ts.\n- [ ] with cents")).toBe(true);
  expect(second).toMatchObject({
    title: "T013 Plain",
    metadata: { status: "open", task: "T013" },
    links: [],
  });
});

test("two features with the same number have different ids", () => {
  const text = "- [ ] T001 a\n";
  const id = (folder: string) =>
    speckitAdapter.parse({ path: `specs/${folder}/tasks.md`, text }).drafts[0]?.id;
  expect(id("027-a")).not.toEqual(id("027-b"));
});

test("each article of a constitution is a constraint", () => {
  const text = `<!-- report -->
# Constitution

## Core Principles

### I. Tests first (NON-NEGOTIABLE)

Red, then green.

## Governance

It rules.

**Version**: 1.2.0 | **Ratified**: 2026-01-01
`;
  const { drafts } = speckitAdapter.parse({ path: ".specify/memory/constitution.md", text });
  expect(drafts).toMatchObject([
    {
      id: { value: "fw_d-constitution-i-tests-first-non-negotiable" },
      spec_type: "constraint",
      content: "Red, then green.",
      metadata: {
        level: 3,
        parents: [
          { level: 1, title: "Constitution" },
          { level: 2, title: "Core Principles" },
        ],
        version: "1.2.0",
      },
    },
    { id: { value: "fw_d-constitution-governance" } },
  ]);
});
