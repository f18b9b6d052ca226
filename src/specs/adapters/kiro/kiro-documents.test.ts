import { expect, test } from "vitest";
import { kiroAdapter } from "./kiro-adapter.ts";

function parse(document: string, text: string) {
  return kiroAdapter.parse({ path: `.kiro/specs/auth/${document}.md`, text });
}

/** Id without the feature, number or state and title of each task. */
function tasksOf(text: string): string[] {
  return parse("tasks", text).drafts.map(({ id, title, metadata }) => {
    const flags = [
      metadata.status,
      metadata.state,
      metadata.optional === true && "optional",
      metadata.parallel === true && "parallel",
    ];
    const name = id.kind === "base" ? id.value.replace("fw_a-auth-tasks-", "") : id.kind;
    return `${name} (${flags.filter(Boolean).join(" ")}) ${title}`;
  });
}

test("each box of tasks.md is a task with number, state and title", () => {
  const text = `# Implementation Plan

- [ ] 1. Set up
- [x] 1.1 Write
* [X] 1.2. Test
- [-] 2. Run
- [~] 3 Wait
- [ ]* 4.1 Maybe
- [ ] **5. Bold**
- [ ] 6.1 (P) Beside
- [ ] Task 7: Named
- [ ] Without a number
- [x]8. Tight
`;
  expect(tasksOf(text)).toEqual([
    "1 (open) Set up",
    "1.1 (done) Write",
    "1.2 (done) Test",
    "2 (in_progress) Run",
    "3 (open ~) Wait",
    "4.1 (open optional) Maybe",
    "5 (open) Bold",
    "6.1 (open parallel) Beside",
    "7 (open) Named",
    "without-a-number (open) Without a number",
    "8 (done) Tight",
  ]);
});

test("a task has its detail lines, references and mentions, and not those of its subtasks", () => {
  const text = `- [ ] 1. Set up
  - Create \`src/a.ts\`
    with care
  - _Requirements: 1.1, 2_
  - [x] 1.1 Write \`src/b.ts\`
    - _Requirements: 3.1_
    - **Validates: Requirements 4.2**
`;
  expect(parse("tasks", text).drafts).toMatchObject([
    {
      content: "- Create `src/a.ts`\n  with care\n- _Requirements: 1.1, 2_",
      span: { start_line: 1, end_line: 4 },
      feature: ".kiro/specs/auth",
      links: [
        { kind: "implements", target: "fw_a-auth-requirements-req1", criterion: "1.1", line: 4 },
        { kind: "implements", target: "fw_a-auth-requirements-req2", line: 4 },
      ],
      mentions: [{ path: "src/a.ts", line: 2 }],
      metadata: { criteria: ["auth#1.1", "auth#2"] },
    },
    {
      content: "- _Requirements: 3.1_\n- **Validates: Requirements 4.2**",
      span: { start_line: 5, end_line: 7 },
      links: [
        { kind: "implements", target: "fw_a-auth-requirements-req3", criterion: "3.1", line: 6 },
        { kind: "validates", target: "fw_a-auth-requirements-req4", criterion: "4.2", line: 7 },
      ],
      mentions: [{ path: "src/b.ts", line: 5 }],
      metadata: { criteria: ["auth#3.1", "auth#4.2"] },
    },
  ]);
  const [all, code] = parse(
    "tasks",
    "- [ ] 1. A\n  - _Requirements: All_\n- [ ] 2. Keep NFR-01\n  - with care\n",
  ).drafts;
  expect([all?.metadata.criteria, code?.metadata.criteria]).toEqual([undefined, ["auth#NFR-01"]]);
});

test("a heading with a box adds details to the listed task that it repeats; any other such heading is a task", () => {
  const text =
    "- [x] 1.1 A\n- [ ] 1.2 B\n\n#### - [ ] 1.1 A\n- one\n- _Requirements: 1_\n\n#### - [ ] 1.3 C\n- two\n";
  expect(tasksOf(text)).toEqual(["1.1 (done) A", "1.2 (open) B", "1.3 (open) C"]);
  const { drafts, diagnostics } = parse("tasks", text);
  expect(drafts[0]).toMatchObject({
    content: "- one\n- _Requirements: 1_",
    span: { start_line: 1, end_line: 1 },
  });
  expect(drafts[0]?.links).toHaveLength(1);
  expect(drafts[2]?.content).toBe("- two");
  expect(diagnostics).toEqual([]);
});

test("a repeated number, an unknown state and a file without tasks are reported", () => {
  const { drafts, diagnostics } = parse("tasks", "- [ ] 1. A\n- [ ] 1. B\n- [?] 2. C\n");
  expect(drafts.map(({ metadata }) => [metadata.status, metadata.state])).toEqual([
    ["open", undefined],
    ["open", undefined],
    ["open", "?"],
  ]);
  expect(diagnostics.map(({ code, line }) => [code, line])).toEqual([
    ["number_duplicate", 2],
    ["task_state_unknown", 3],
  ]);
  expect(parse("tasks", "# Plan\n\nLater.\n").diagnostics.map(({ code }) => code)).toEqual(["no_task"]);
});

test("a long first line is cut in the title and whole in the content", () => {
  const words = "word ".repeat(100).trim();
  const [draft] = parse("tasks", `- [ ] 1. ${words}\n  - detail\n`).drafts;
  expect(draft?.title).toHaveLength(300);
  expect(draft?.content).toBe(`${words}\n- detail`);
});

test("400 levels of tasks are 400 tasks", () => {
  const text = Array.from({ length: 400 }, (_, level) => `${"  ".repeat(level)}- [ ] ${level}. step\n`).join(
    "",
  );
  expect(parse("tasks", text).drafts).toHaveLength(400);
});

test("each second-level section of a design is a block with what it validates", () => {
  const text = `# Design

Text before the first section is not a block.

## Overview

See [the code](../../../src/a.ts).

## Correctness Properties

### Property 1

**Validates: Requirements 1.1, 2.3**

## Overview
`;
  expect(parse("design", text)).toMatchObject({
    diagnostics: [],
    drafts: [
      {
        id: { value: "fw_a-auth-design-overview" },
        spec_type: "design",
        title: "Overview",
        content: "See [the code](../../../src/a.ts).",
        span: { start_line: 5, end_line: 7 },
        mentions: [{ path: "../../../src/a.ts", line: 7 }],
      },
      {
        id: { value: "fw_a-auth-design-correctness-properties" },
        links: [
          { kind: "validates", target: "fw_a-auth-requirements-req1", criterion: "1.1", line: 13 },
          { kind: "validates", target: "fw_a-auth-requirements-req2", criterion: "2.3", line: 13 },
        ],
      },
      { id: { value: "fw_a-auth-design-overview" }, content: "Overview" },
    ],
  });
});

test("a design without second-level sections is one block", () => {
  expect(parse("design", "# Plan of it\n\ntext\n\n### Sub\n").drafts).toMatchObject([
    { id: { value: "fw_a-auth-design" }, title: "Plan of it", content: "text\n\n### Sub" },
  ]);
  expect(parse("design", "text\n").drafts).toMatchObject([{ title: "Design", content: "text" }]);
  expect(parse("design", " \n").drafts).toEqual([]);
});

test("a bug analysis is a block per behaviour, with the ids of requirements", () => {
  const text = `# Bugfix Requirements Document

## Introduction

## Bug Analysis

### Current Behavior (Defect)

1.1 WHEN a THEN the system fails

### Expected Behavior (Correct)

2.1 WHEN a THEN the system SHALL work

2.2 WHEN b THEN the system SHALL work, too

### Unchanged Behavior (Regression Prevention)

**3.1** WHEN c THEN the system SHALL CONTINUE TO work
`;
  const { drafts, diagnostics } = parse("bugfix", text);
  expect(diagnostics).toEqual([]);
  expect(
    drafts.map(({ id, spec_type, metadata }) => [
      id.kind === "base" && id.value,
      spec_type,
      metadata.behavior,
      metadata.ears_patterns?.map(({ number, line }) => `${number}:${line}`),
    ]),
  ).toEqual([
    ["fw_a-auth-requirements-req1", "requirement", "current", []],
    ["fw_a-auth-requirements-req2", "requirement", "expected", ["2.1:13", "2.2:15"]],
    ["fw_a-auth-requirements-req3", "requirement", "unchanged", ["3.1:19"]],
  ]);
});

test("a bugfix.md in the form of requirements is read as requirements; any other is reported", () => {
  expect(parse("bugfix", "### Requirement 1\n1. THE a SHALL b\n").drafts).toHaveLength(1);
  expect(parse("bugfix", "# Bug\n\ntext\n").diagnostics.map(({ code }) => code)).toEqual(["no_behaviour"]);
});
