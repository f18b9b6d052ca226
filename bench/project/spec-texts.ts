import type { RandomText } from "./random-text.ts";

/** Paths of code and tests that a document can mention. */
export interface Mentionable {
  readonly code: readonly string[];
  readonly tests: readonly string[];
}

const japanese = "利用者は注文を確認できる。システムは在庫を更新し、結果を画面に表示する。";

/** Half of the real files hold something that is not ASCII: a dash, an arrow, a check mark, another script. */
function seasoned(text: RandomText, markdown: string): string {
  if (text.chance(0.5)) return markdown;
  const mark = text.pick(["—", "→", "✓", "≥", "é"]);
  const season = text.chance(0.06) ? japanese.repeat(4) : mark;
  const middle = markdown.indexOf("\n\n", markdown.length / 2);
  return middle === -1
    ? markdown + season
    : `${markdown.slice(0, middle)} ${season}${markdown.slice(middle)}`;
}

function join(text: RandomText, parts: readonly string[]): string {
  return seasoned(text, `${parts.join("\n\n")}\n`);
}

const count = <Value>(length: number, make: (n: number) => Value): Value[] =>
  Array.from({ length }, (_, index) => make(index + 1));

function code(text: RandomText, lines: number): string {
  const body = count(
    lines,
    () => `  const ${text.oneWord()} = ${text.oneWord()}.${text.oneWord()}(${text.oneWord()});`,
  );
  return ["```ts", `export function ${text.oneWord()}() {`, ...body, "}", "```"].join("\n");
}

export function kiroRequirements(text: RandomText): string {
  const criterion = (n: number): string => {
    const what = `THE system SHALL ${text.words(14 + text.below(10))}`;
    const kind = text.below(5);
    if (kind === 0) return `${n}. ${what}`;
    if (kind === 1) return `${n}. WHILE ${text.words(5)}, ${what}`;
    if (kind === 2) return `${n}. IF ${text.words(6)} THEN ${what}`;
    return `${n}. WHEN ${text.words(7)} THEN ${what}`;
  };
  const requirement = (n: number): string =>
    [
      `### Requirement ${n}: ${text.title(3)}`,
      `**User Story:** As a ${text.oneWord()}, I want ${text.words(9)}, so that ${text.words(9)}`,
      "#### Acceptance Criteria",
      count(4 + text.below(4), criterion).join("\n"),
    ].join("\n\n");
  return join(text, [
    "# Requirements Document",
    "## Introduction",
    text.paragraph(80),
    "## Requirements",
    ...count(8, requirement),
  ]);
}

export function kiroDesign(text: RandomText, { code: files }: Mentionable): string {
  const section = (n: number): string =>
    [
      `## ${text.title(2)}`,
      text.paragraph(110),
      `The work happens in \`${text.pick(files)}\`. ${text.sentence(12)}`,
      ...(n % 2 === 0
        ? [code(text, 14)]
        : [count(6, () => `- **${text.oneWord()}**: ${text.words(10)}`).join("\n")]),
      ...(n % 3 === 0 ? [`### ${text.title(2)}`, text.paragraph(50)] : []),
    ].join("\n\n");
  return join(text, ["# Design Document", text.paragraph(60), ...count(11, section)]);
}

export function kiroTasks(text: RandomText, { code: files, tests }: Mentionable): string {
  const task = (n: number): string => {
    const box = text.pick(["[x]", "[ ]", "[ ]", "[-]"]);
    const lines = [`- ${box} ${n}. ${text.title(5)}`, `  - ${text.words(16)}`];
    for (let sub = 1; sub <= 2; sub += 1) {
      lines.push(`- ${text.pick(["[x]", "[ ]"])} ${n}.${sub} ${text.title(6)}`, `  - ${text.words(14)}`);
      lines.push(`  - ${text.words(12)} in \`${text.pick(sub === 2 ? tests : files)}\``);
      lines.push(`  - _Requirements: ${1 + text.below(8)}.${1 + text.below(4)}, ${1 + text.below(8)}.1_`);
    }
    return lines.join("\n");
  };
  return join(text, ["# Implementation Plan", ...count(8, task)]);
}

export function specKitSpec(text: RandomText): string {
  const story = (n: number): string =>
    [
      `### User Story ${n} - ${text.title(4)} (Priority: P${1 + text.below(3)})`,
      text.paragraph(50),
      `**Why this priority**: ${text.sentence(14)}`,
      "**Acceptance Scenarios**:",
      count(
        3,
        (k) => `${k}. **Given** ${text.words(7)}, **When** ${text.words(7)}, **Then** ${text.words(9)}`,
      ).join("\n"),
    ].join("\n\n");
  return join(text, [
    `# Feature Specification: ${text.title(4)}`,
    "**Status**: Draft",
    "## User Scenarios & Testing *(mandatory)*",
    ...count(4, story),
    "## Requirements *(mandatory)*",
    "### Functional Requirements",
    count(12, (n) => `- **FR-${String(n).padStart(3, "0")}**: System MUST ${text.words(16)}`).join("\n"),
    "## Success Criteria *(mandatory)*",
    "### Measurable Outcomes",
    count(4, (n) => `- **SC-${String(n).padStart(3, "0")}**: ${text.words(14)}`).join("\n"),
  ]);
}

export function specKitPlan(text: RandomText, { code: files }: Mentionable): string {
  return join(text, [
    `# Implementation Plan: ${text.title(3)}`,
    "## Summary",
    text.paragraph(70),
    ...count(7, (n) =>
      [
        `## ${text.title(3)}`,
        text.paragraph(90),
        n % 2 === 0 ? code(text, 12) : `See \`${text.pick(files)}\`.`,
      ].join("\n\n"),
    ),
  ]);
}

export function specKitTasks(text: RandomText, { code: files, tests }: Mentionable): string {
  let id = 0;
  const task = (): string => {
    id += 1;
    const where = text.pick(id % 3 === 0 ? tests : files);
    return `- [${text.pick(["x", " "])}] T${String(id).padStart(3, "0")} [P] [US${1 + text.below(4)}] ${text.title(1)} ${text.words(9)} in ${where}`;
  };
  return join(text, [
    `# Tasks: ${text.title(3)}`,
    ...count(5, (n) =>
      [`## Phase ${n}: ${text.title(2)}`, text.sentence(20), count(6, task).join("\n")].join("\n\n"),
    ),
  ]);
}

/** CLAUDE.md, AGENTS.md and the like: a section per rule. */
export function sections(text: RandomText, amount: number): string {
  const section = (): string =>
    [
      `## ${text.title(2)}`,
      text.paragraph(45),
      count(5, () => `- ${text.words(11)}`).join("\n"),
      ...(text.chance(0.3) ? [code(text, 8)] : []),
    ].join("\n\n");
  return join(text, [`# ${text.title(2)}`, text.paragraph(30), ...count(amount, section)]);
}

/** A rule file: front matter, then a text without sections or with a few. */
export function ruleFile(text: RandomText, frontMatter: string): string {
  return join(text, [
    `---\n${frontMatter}\n---`,
    `# ${text.title(3)}`,
    text.paragraph(60),
    ...count(3, () =>
      [`## ${text.title(2)}`, text.paragraph(70), count(5, () => `- ${text.words(12)}`).join("\n")].join(
        "\n\n",
      ),
    ),
    code(text, 20),
  ]);
}

export function tesslSpec(text: RandomText, { code: files, tests }: Mentionable): string {
  const capability = (): string =>
    [
      `### ${text.title(3)}`,
      text.paragraph(50),
      count(4, () => `- ${text.words(10)} [@test](../${text.pick(tests)})`).join("\n"),
    ].join("\n\n");
  return join(text, [
    `# ${text.title(3)}`,
    text.paragraph(40),
    "## Target",
    `[@generate](../${text.pick(files)})`,
    "## Capabilities",
    ...count(8, capability),
  ]);
}

export function openSpec(text: RandomText): string {
  const requirement = (): string =>
    [
      `### Requirement: ${text.title(4)}`,
      `The system SHALL ${text.words(22)}.`,
      ...count(
        2,
        () => `#### Scenario: ${text.title(3)}\n- **WHEN** ${text.words(8)}\n- **THEN** ${text.words(9)}`,
      ),
    ].join("\n\n");
  return join(text, [
    `# ${text.title(2)}`,
    "## Purpose",
    text.paragraph(40),
    "## Requirements",
    ...count(12, requirement),
  ]);
}
