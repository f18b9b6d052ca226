import { expect, test } from "vitest";
import type { SpecDraft } from "../../adapter.ts";
import { kiroAdapter } from "./kiro-adapter.ts";

function parse(text: string, path = ".kiro/specs/auth/requirements.md") {
  return kiroAdapter.parse({ path, text });
}

function idsOf(drafts: readonly SpecDraft[]): string[] {
  return drafts.map(({ id }) => (id.kind === "base" ? id.value : id.kind));
}

/** Number, pattern, line and text of each criterion of the first block. */
function criteriaOf(text: string): string[] {
  const entries = parse(text).drafts[0]?.metadata.ears_patterns ?? [];
  return entries.map(({ number, pattern, line, text }) => `${number} ${pattern} ${line}: ${text}`);
}

const requirement = (criteria: string) =>
  `### Requirement 1: Login\n\n#### Acceptance Criteria\n\n${criteria}`;

test("a requirement section becomes a block with its story, criteria, lines and mentions", () => {
  const text = `# Requirements Document

## Introduction

Not a block.

### Requirement 1: Login

**User Story:** As a user, I want to log in,
so that I see my orders.

#### Acceptance Criteria

1. WHEN a user logs in THEN the system SHALL greet (see \`src/login.ts\`)
2. IF the password is wrong, THEN THE system SHALL refuse

## Glossary
`;
  expect(parse(text)).toEqual({
    diagnostics: [],
    drafts: [
      {
        id: { kind: "base", value: "fw_a-auth-requirements-req1" },
        framework: "fw_a",
        spec_type: "requirement",
        title: "Requirement 1: Login",
        content: text.slice(text.indexOf("**User"), text.indexOf("\n\n## Glossary")),
        tags: ["fw_a", "auth"],
        lifecycle: "active",
        priority: "medium",
        metadata: {
          number: "1",
          user_story: "As a user, I want to log in, so that I see my orders.",
          acceptance_criteria: [
            {
              pattern: "event_driven",
              trigger: "a user logs in",
              response: "the system SHALL greet (see `src/login.ts`)",
            },
            {
              pattern: "unwanted_behavior",
              trigger: "the password is wrong",
              response: "THE system SHALL refuse",
            },
          ],
          ears_patterns: [
            {
              pattern: "event_driven",
              text: "WHEN a user logs in THEN the system SHALL greet (see `src/login.ts`)",
              line: 14,
              number: "1.1",
            },
            {
              pattern: "unwanted_behavior",
              text: "IF the password is wrong, THEN THE system SHALL refuse",
              line: 15,
              number: "1.2",
            },
          ],
        },
        span: { start_line: 7, end_line: 15 },
        feature: ".kiro/specs/auth",
        links: [],
        mentions: [{ path: "src/login.ts", line: 14 }],
        aliases: ["fw_a-auth-requirements-*"],
      },
    ],
  });
});

test.each([
  ["### Requirement 2", "req2"],
  ["## Requirement 2: A", "req2"],
  ["#### Requirement 2.1 - A", "req2.1"],
  ["### 要件2: あ", "req2"],
  ["### 要件 2：あ", "req2"],
  ["### 需求 2：甲", "req2"],
  ["### 요구사항 2: 가", "req2"],
  ["### US-002: A", "req2"],
  ["### REQ-2 A", "req2"],
  ["### User Story 2 - A", "req2"],
  ["### **Requirement 2**", "req2"],
  ["### Requirement 2.OAuth2", "req2"],
  ["### 2. Login\n\n#### Acceptance Criteria", "req2"],
  ["### Login\n\n#### Acceptance Criteria", "login"],
  ["### Login\n\n**Acceptance Criteria:**", "login"],
])("%j is a requirement", (heading, id) => {
  expect(idsOf(parse(`${heading}\n\n1. THE a SHALL b\n`).drafts)).toEqual([`fw_a-auth-requirements-${id}`]);
});

test.each([
  "## Requirements",
  "### Required 2 things",
  "### R2 storage",
  "### Introduction",
  "### Requirements Coverage",
])("%j is none", (heading) => {
  expect(parse(`${heading}\n\ntext\n`).drafts).toEqual([]);
});

test("a requirement ends at the next requirement of any level, and at a heading of its level", () => {
  const text = "## Requirement 1\na\n### Requirement 2\nb\n#### Details\nc\n### Notes\nd\n";
  expect(parse(text).drafts.map(({ content, span }) => [content, span.start_line, span.end_line])).toEqual([
    ["a", 1, 2],
    ["b\n#### Details\nc", 3, 6],
  ]);
});

test("a requirement's parts can have headings of its level", () => {
  const text =
    "### Requirement 1\n\n### User Story\nAs a user\n\n### Acceptance Criteria\n1. a\n\n### Requirement 2\n";
  const [first, second] = parse(text).drafts;
  expect(first?.metadata.user_story).toBe("As a user");
  expect(first?.metadata.ears_patterns).toHaveLength(1);
  expect(second?.title).toBe("Requirement 2");
});

test.each([
  ["**User Story:** As a user", "As a user"],
  ["**User Story**: As a user", "As a user"],
  ["> **User Story:** As a user\n> again", "As a user again"],
  ["**Objective:** As a user", "As a user"],
  ["**ユーザーストーリー:** 利用者として", "利用者として"],
  ["**用户故事：** 作为用户", "作为用户"],
  ["User Story: As a user", "As a user"],
  ["**User Story:**\n\nAs a user", "As a user"],
  ["- **User Story:** As a user\n1. a", "As a user"],
  ["**User Story:** a\n\n**User Story:** b", "a\nb"],
  ["The user story is told elsewhere", undefined],
])("%j has the story %j", (text, story) => {
  expect(parse(`### Requirement 1\n\n${text}\n`).drafts[0]?.metadata.user_story).toBe(story);
});

test.each([
  "#### Acceptance Criteria",
  "**Acceptance Criteria:**",
  "**Acceptance Criteria**:",
  "Acceptance Criteria:",
  "#### 受入基準",
  "#### 受け入れ基準",
  "#### 验收标准",
  "##### EARS Acceptance Criteria (must)",
])("criteria stand below %j", (label) => {
  expect(criteriaOf(`### Requirement 1\n\n${label}\n\n1. 提供すること\n`)).toEqual([
    "1.1 unclassified 5: 提供すること",
  ]);
});

test("criteria that belong to no single requirement are a separate block", () => {
  const text = "## Requirements\n### Requirement 1\n1. THE a SHALL b\n\n## Acceptance Criteria\n1. c\n2. d\n";
  expect(parse(text).drafts.map(({ title, metadata }) => [title, metadata.ears_patterns?.length])).toEqual([
    ["Requirement 1", 1],
    ["Acceptance Criteria", 2],
  ]);
  expect(parse("# Login\n\n## User Story\nAs a user\n\n## Acceptance Criteria\n- c\n").drafts).toMatchObject([
    { title: "Login", metadata: { user_story: "As a user", ears_patterns: [{ text: "c", number: "1" }] } },
  ]);
});

test("criteria are numbered after their requirement, or by their own numbers", () => {
  expect(criteriaOf(requirement("1. a\n2) b\n3. c"))).toMatchObject(
    ["1.1 ", "1.2 ", "1.3 "].map((n) => expect.stringMatching(`^${n}`)),
  );
  expect(criteriaOf(requirement("2.1 The X shall a\n2.2. The X shall b\n**2.3** c"))).toEqual([
    "2.1 ubiquitous 5: The X shall a",
    "2.2 ubiquitous 6: The X shall b",
    "2.3 unclassified 7: c",
  ]);
  expect(criteriaOf(requirement("1. a\n1. b"))).toEqual(["1.1 unclassified 5: a", "1.2 unclassified 6: b"]);
  expect(criteriaOf(requirement("- AC1: a\n- **AC2**: b"))).toEqual([
    "1.1 unclassified 5: a",
    "1.2 unclassified 6: b",
  ]);
});

test("bullets are criteria where nothing is numbered, and parts of one where something is", () => {
  expect(criteriaOf(requirement("- a\n  - more\n* [ ] b"))).toEqual([
    "1.1 unclassified 5: a - more",
    "1.2 unclassified 7: b",
  ]);
  expect(criteriaOf(requirement("1. a:\n   - b\n   1. c\n- d\n2. e"))).toEqual([
    "1.1 unclassified 5: a: - b 1. c - d",
    "1.2 unclassified 9: e",
  ]);
});

test("a scenario of Given, When and Then is one criterion", () => {
  expect(criteriaOf(requirement("- GIVEN a WHEN b\n- THEN c\n- AND d\n- GIVEN e WHEN f THEN g"))).toEqual([
    "1.1 event_driven 5: GIVEN a WHEN b - THEN c - AND d",
    "1.2 event_driven 8: GIVEN e WHEN f THEN g",
  ]);
});

test("a criterion continues over lines, blank lines and a fence, and ends at a paragraph", () => {
  const text =
    "1. WHEN a\n   THEN b SHALL c\n\n   and d\n   ```\n   2. no\n   ```\nlazy\n\nA note.\n3 more words\n2. e";
  expect(criteriaOf(requirement(text))).toEqual([
    "1.1 event_driven 5: WHEN a THEN b SHALL c and d lazy",
    "1.2 unclassified 16: e",
  ]);
});

test("a sentence in EARS without a number is a criterion, other text is not", () => {
  expect(criteriaOf(requirement("WHEN a THEN b SHALL c\n\nSome text.\n\nTHE d SHALL e"))).toEqual([
    "1.1 event_driven 5: WHEN a THEN b SHALL c",
    "1.2 ubiquitous 9: THE d SHALL e",
  ]);
});

test("without a label, only list items in EARS are criteria", () => {
  expect(criteriaOf("### Requirement 1\n- Add a command.\n- WHEN a THEN b SHALL c\n")).toEqual([
    "1.1 event_driven 3: WHEN a THEN b SHALL c",
  ]);
});

test("criteria in fences, comments and other parts of the requirement do not count", () => {
  const text = "```\n**Acceptance Criteria**\n1. no\n```\n<!--\n2. no\n-->\n1. yes\n\n#### Notes\n\n1. no\n";
  expect(criteriaOf(requirement(text))).toEqual(["1.1 unclassified 12: yes"]);
});

test("a repeated number, a requirement without criteria and a file without requirements are reported", () => {
  const twice = parse("### Requirement 1: A\n1. THE a SHALL b\n### Requirement 1: B\n");
  expect(idsOf(twice.drafts)).toEqual(["fw_a-auth-requirements-req1", "fw_a-auth-requirements-req1"]);
  expect(twice.diagnostics.map(({ code, line, path }) => [code, line, path])).toEqual([
    ["number_duplicate", 3, ".kiro/specs/auth/requirements.md"],
    ["requirement_without_criteria", 3, ".kiro/specs/auth/requirements.md"],
  ]);
  expect(parse("# Nothing\n").diagnostics.map(({ code }) => code)).toEqual(["no_requirement"]);
  expect(parse("").diagnostics).toEqual([]);
});

test("an unclosed fence is reported, because it hides the text after it", () => {
  const { drafts, diagnostics } = parse("### Requirement 1\n1. THE a SHALL b\n```\n### Requirement 2\n");
  expect(drafts).toHaveLength(1);
  expect(diagnostics).toMatchObject([{ code: "fence_unclosed", line: 3, severity: "warning" }]);
});

test("sections of non-functional requirements and constraints are separate blocks", () => {
  const text =
    "### Requirement 1\n1. THE a SHALL b\n\n## Non-Functional Requirements\n\n### Speed\n- fast\n\n## 制約\n無料\n";
  expect(parse(text).drafts.map(({ spec_type, title, content }) => [spec_type, title, content])).toEqual([
    ["requirement", "Requirement 1", "1. THE a SHALL b"],
    ["constraint", "Non-Functional Requirements", "### Speed\n- fast"],
    ["constraint", "制約", "無料"],
  ]);
});

test("CRLF, CR and a section without text are read", () => {
  const text = "### Requirement 1\r\n\r\n#### Acceptance Criteria\r\n\r\n1. THE a SHALL b\r\n";
  expect(criteriaOf(text)).toEqual(["1.1 ubiquitous 5: THE a SHALL b"]);
  expect(criteriaOf(text.replaceAll("\r\n", "\r"))).toEqual(["1.1 ubiquitous 5: THE a SHALL b"]);
  expect(parse("### Requirement 1: Empty\n").drafts[0]?.content).toBe("Requirement 1: Empty");
});

test("the feature is the folder below .kiro/specs, at any depth and in any package", () => {
  const idOf = (path: string) => idsOf(parse("### Requirement 1\n", path).drafts)[0];
  expect(idOf("packages/api/.kiro/specs/auth/requirements.md")).toBe("fw_a-auth-requirements-req1");
  expect(idOf(".kiro/specs/shop/cart/requirements.md")).toBe("fw_a-shop-cart-requirements-req1");
  expect(idOf(".kiro/specs/requirements.md")).toBe("fw_a-project-requirements-req1");
  expect(idOf(".kiro/specs/認証/requirements.md")).toBe("fw_a-認証-requirements-req1");
});

test("only Kiro's documents are read", () => {
  const paths = [
    ".kiro/specs/a/requirements.md",
    ".kiro/specs/a/bugfix.md",
    "x/.kiro/specs/a/b/tasks.md",
    ".kiro/specs/a/design.md",
  ];
  expect(paths.filter((path) => !kiroAdapter.matches(path))).toEqual([]);
  const others = [
    ".kiro/specs/a/research.md",
    ".kiro/steering/design.md",
    "x.kiro/specs/a/design.md",
    "specs/a/tasks.md",
    ".kiro/specs/a/tasks.md.bak",
  ];
  expect(others.filter((path) => kiroAdapter.matches(path))).toEqual([]);
});
