import { expect, test } from "vitest";
import { assembleBlocks } from "../../model/assemble-blocks.ts";
import { kiroAdapter } from "./kiro-adapter.ts";

function parse(text: string, document = "requirements") {
  const path = `.kiro/specs/auth/${document}.md`;
  return { path, parsed: kiroAdapter.parse({ path, text }) };
}

/** Type, end of the id, and the numbers of the criteria of each block. */
function blocksOf(text: string): string[] {
  return parse(text).parsed.drafts.map(({ spec_type, id, metadata }) => {
    const name = id.kind === "base" ? id.value.replace("fw_a-auth-requirements-", "") : id.kind;
    const numbers = (metadata.ears_patterns ?? []).map(({ number }) => number);
    return `${spec_type} ${name}: ${numbers.join(" ")}`.trimEnd();
  });
}

function storyOf(lines: string): unknown {
  const text = `### Requirement 1\n${lines}\n\n#### Acceptance Criteria\n1. a\n`;
  return parse(text).parsed.drafts[0]?.metadata.user_story;
}

test("numbered chapters of non-functional requirements and of criteria are no requirements", () => {
  const text = `# Requirements
## 3. Functional Requirements
### Requirement 1: Login
#### Acceptance Criteria
1. WHEN a THEN the system SHALL b
## 4. Non-functional Requirements
### 4.1 Speed
- The system SHALL respond in 200 ms
- **Logging:** Response times SHALL be logged
- fast
### 4.2 Security
1. WHEN x THEN the system SHALL y
## 5. Acceptance Criteria Summary
- [ ] Users log in
- [ ] Users log out
`;
  expect(blocksOf(text)).toEqual([
    "requirement req1: 1.1",
    "constraint 4-non-functional-requirements: 1 2 3",
    "constraint 5-acceptance-criteria-summary: 1 2",
  ]);
});

test("criteria below a heading of the requirement's level belong to the requirement if it has none yet", () => {
  const text = `## Requirement 1
As an admin, I want a.
## Acceptance Criteria
1. a
2. b
## Requirement 2
### Acceptance Criteria
1. c
## Acceptance Criteria
1. d
`;
  expect(blocksOf(text)).toEqual([
    "requirement req1: 1.1 1.2",
    "requirement req2: 2.1",
    "constraint acceptance-criteria: 1",
  ]);
});

test("a chapter of criteria does not belong to the chapter before it", () => {
  const chapters = "## 2. Login\n**User Story:** As a u, I want v\n### Acceptance Criteria\n1. a\n";
  for (const before of ["## 4. Non-Functional Requirements\n1. THE x SHALL y", "## 4. Glossary\n- x"]) {
    const [first, ...rest] = blocksOf(`# R\n${chapters}${before}\n## 5. Acceptance Criteria\n1. all pass\n`);
    expect(first).toBe("requirement req2: 2.1");
    expect(rest.at(-1)).toBe("constraint 5-acceptance-criteria: 1");
    expect(rest.some((block) => block.startsWith("requirement"))).toBe(false);
  }
});

test("parts of a chapter of criteria can be lists of either kind", () => {
  const chapter = "## Acceptance Criteria\n### Functional\n- [ ] x\n- [ ] y\n### Technical\n1. z\n";
  expect(blocksOf(`### Requirement 1\n1. THE a SHALL b\n${chapter}`).at(-1)).toBe(
    "constraint acceptance-criteria: 1 2 3",
  );
});

test.each([
  ["Nicht-funktionale Anforderungen", "Das System SOLL schnell sein"],
  ["Requisitos no funcionales", "El sistema DEBERÁ responder"],
  ["Requisitos Não Funcionais", "O sistema DEVE responder"],
  ["Exigences non fonctionnelles", "Le système DOIT répondre"],
])("%s are constraints with criteria", (title, statement) => {
  const [, constraint] = blocksOf(`### Requirement 1\n1. THE a SHALL b\n## ${title}\n1. ${statement}\n`);
  expect(constraint).toMatch(/^constraint .*: 1$/);
});

test("a document without requirement headings has its lists in EARS or with codes as requirements", () => {
  expect(blocksOf("## 1. Login\n- WHEN a THE SYSTEM SHALL b\n- WHEN c THE SYSTEM SHALL d\n")).toEqual([
    "requirement req1: 1.1 1.2",
  ]);
  const listed =
    "## Functional\n- **FR-1**: Users log in\n- **FR-2 (Out)**: Users log out\n## Constraints\n- Node\n";
  expect(blocksOf(listed)).toEqual(["requirement functional: FR-1 FR-2", "constraint constraints:"]);
});

test.each([
  ["| # | Criterion |\n|---|---|\n| 1 | WHEN a THEN b SHALL c |\n| 2 | d |", ["1.1", "1.2"]],
  ["1. a, with:\n\n| Status | Code |\n|---|---|\n| 400 | x |\n\n2. b", ["1.1", "1.2"]],
  ["**AC1:** When a, then b\n**AC2:** When c, then d", ["1.1", "1.2"]],
  ["- **AC-1.1**: a\n- **AC-1.2**: b", ["1.1", "1.2"]],
  [
    "- Login\n  - WHEN a THEN b SHALL c\n  - WHEN d THEN e SHALL f\n- Logout\n  - IF a THEN b SHALL c",
    ["1.1", "1.2", "1.3"],
  ],
  ["- **Given** a\n- **When** b\n- **Then** c", ["1.1"]],
  [
    "```gherkin\nScenario: one\n  Given a\n  When b\n  Then c\n\nScenario: two\n  When d\n  Then e\n```",
    ["1.1", "1.2"],
  ],
  ["* when a user clicks then it opens\n* when b then c", ["1.1", "1.2"]],
  ["1) a\n2) b", ["1.1", "1.2"]],
])("criteria of any shape are read: %j", (criteria, numbers) => {
  expect(blocksOf(`### Requirement 1\n#### Acceptance Criteria\n${criteria}\n`)).toEqual([
    `requirement req1: ${numbers.join(" ")}`,
  ]);
});

test.each([
  ["### Requisito 1 - Página", "#### Critérios de Aceite", "QUANDO a ENTÃO o sistema DEVE b", "event_driven"],
  [
    "### R1 — Gestión",
    "#### Criterios de aceptación",
    "SI a ENTONCES el sistema DEBERÁ b",
    "unwanted_behavior",
  ],
  ["### 需求 1：登录", "#### 验收标准", "WHEN 甲 THEN 系统 SHALL 乙", "event_driven"],
  ["### 要件1: あ", "#### 受け入れ基準", "利用者が押した場合、表示する", "unclassified"],
  ["### المتطلب 1: دخول", "#### معايير القبول", "عندما أقوم", "unclassified"],
])("%s is read in its language", (...words) => {
  const [heading, label, criterion, pattern] = words;
  const { drafts } = parse(`${heading}\n${label}\n1. ${criterion}\n`).parsed;
  expect(drafts).toMatchObject([{ metadata: { number: "1", ears_patterns: [{ number: "1.1", pattern }] } }]);
});

test.each([
  ["As an admin, I want a, so that b.", "As an admin, I want a, so that b."],
  ["**As a** user  \n**I want** a  \n**So that** b", "As a user I want a So that b"],
  ["- **As a** user\n- **I want** a\n- **So that** b", "As a user I want a So that b"],
  ["> As a user, I need a", "As a user, I need a"],
  ["**As a** user\n\n**I want** a", "As a user I want a"],
  ["Como visitante, quero ver, para saber.", "Como visitante, quero ver, para saber."],
  ["作为用户，我希望登出，以便安全", "作为用户，我希望登出，以便安全"],
  ["利用者として、ログインしたい。", "利用者として、ログインしたい。"],
  ["**História do Usuário:** Como a, quero b", "Como a, quero b"],
  ["As a rule, the cache is warm.", undefined],
  ["As the diagram shows, b.", undefined],
])("the story of %j", (lines, story) => {
  expect(storyOf(lines)).toBe(story);
});

test("labels name statements by their codes, and labels that name nothing are reported", () => {
  const requirements = `### US-1: Login
**Acceptance Criteria:**
- **AC-1.1**: a
### US-2: Logout
**Acceptance Criteria:**
- AC-7: b
### User Story 3: Help
#### Acceptance Criteria
1. c
## Non-Functional Requirements
- **NFR-1**: fast
| ID | Text |
|---|---|
| NFR-PERF-002 | small |
`;
  const tasks = `- [ ] 1. A
  - _Requirements: AC-1.1, US-2_
- [ ] 2. B
  - _Requirements: AC-7, NFR-1, NFR-PERF-2_
- [ ] 3. C
  - _Requirements: All_
- [ ] 4. D
  - _Requirements: US-3_
- [ ] 5. E
  - _Requirements: AC-9, NFR-8, US-9_
- [ ] 6. F
  - _Requirements: Usability_
`;
  const files = [parse(requirements), parse(tasks, "tasks")];
  const related = assembleBlocks(files)
    .blocks.filter(({ spec_type }) => spec_type === "task")
    .map(({ metadata }) =>
      (metadata.related_specs ?? []).map((id) => id.replace("fw_a-auth-requirements-", "")),
    );
  expect(related).toEqual([
    ["req1", "req2"],
    ["req2", "non-functional-requirements"],
    ["req1", "req2", "req3"],
    ["req3"],
    [],
    [],
  ]);
  expect(files[1]?.parsed.diagnostics).toMatchObject([{ code: "no_requirement_named", line: 12 }]);
});

test("a code that several blocks have names none of them", () => {
  const story = (n: number) => `### US-${n}: x\n**Acceptance Criteria:**\n- AC-1: a\n- AC-2: b\n`;
  const files = [parse(story(1) + story(2)), parse("- [ ] 1. A\n  - _Requirements: AC-2_\n", "tasks")];
  expect(assembleBlocks(files).blocks.at(-1)?.metadata.related_specs).toBeUndefined();
});

test("the indent of a label decides to which task it belongs", () => {
  const tasks = `- [ ] 1. Parent
  - [ ] 1.1 Child
    - _Requirements: 1.1_
  - [ ] 1.2 Child
    - detail
  - _Requirements: 2.1_
- [ ] 2. Parent
  - [ ] 2.1 Child
_Requirements: 3.1_
- [ ] 3. Alone
_Requirements: 4.1_
`;
  const withName = parse(tasks, "tasks").parsed.drafts.map(
    ({ metadata, links }) => `${metadata.number}: ${links.map(({ criterion }) => criterion).join()}`,
  );
  expect(withName).toEqual(["1: 2.1", "1.1: 1.1", "1.2: ", "2: 3.1", "2.1: ", "3: 4.1"]);
});

test("criteria numbered 1a, by a bare code before a keyword, and three levels deep are criteria", () => {
  const text = `### R1: Pay
#### Acceptance Criteria
1a. WHEN a guest pays THEN the system SHALL send a receipt
1b) WHEN a guest cancels THEN the system SHALL refund
- 1.1.3 THE system SHALL log
### R2 - Refund
**Acceptance Criteria:**
R2.1 WHEN a refund is due THEN the system SHALL pay back
R2.2 IF it fails THEN the system SHALL retry
`;
  expect(blocksOf(text)).toEqual(["requirement req1: 1.1a 1.1b 1.1.3", "requirement req2: R2.1 R2.2"]);
});

test("ticks are done and half boxes are under way, as people and editors write them", () => {
  const { parsed } = parse("- [✓] 1. a\n- [✔] 2. b\n- [☑] 3. c\n- [/] 4. d\n- [>] 5. e\n", "tasks");
  expect(parsed.drafts.map(({ metadata }) => metadata.status)).toEqual([
    "done",
    "done",
    "done",
    "in_progress",
    "open",
  ]);
  expect(parsed.diagnostics.map(({ line }) => line)).toEqual([5]);
});
