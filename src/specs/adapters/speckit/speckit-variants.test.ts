import { expect, test } from "vitest";
import { speckitAdapter } from "./speckit-adapter.ts";

/** Title, story number, priority and criteria of each block. */
function blocksOf(text: string) {
  const { drafts } = speckitAdapter.parse({ path: "specs/001-shop/spec.md", text });
  return drafts.map(({ metadata, priority }) => ({
    story: metadata.story,
    priority,
    criteria: (metadata.ears_patterns ?? []).map(({ number, pattern }) => `${number} ${pattern}`),
  }));
}

test.each([
  ["### US1 - Buy (Priority: P1)", "US1", "high"],
  ["### US2: Buy", "US2", "medium"],
  ["### US-3 Buy (P1)", "US3", "high"],
  ["### User Story 1 — Title (Priority: P2)", "US1", "medium"],
  ["#### Story 2: Buy", "US2", "medium"],
  ["## User Story 4: Buy", "US4", "medium"],
  ["### 🎯 User Story 5 - Buy", "US5", "medium"],
  ["### 使用者故事 6 - 查看 (優先級: P1)", "US6", "high"],
  ["### ユーザーストーリー 7 - 見る", "US7", "medium"],
  ["### História de Usuário 8 - Ver (Prioridade: P1)", "US8", "high"],
])("%s is a story", (heading, story, priority) => {
  const text = `${heading}\n\nAs a buyer, I want it.\n\n**Acceptance Scenarios**:\n\n1. **Given** a, **When** b, **Then** c\n`;
  const number = story.slice(2);
  expect(blocksOf(text)).toEqual([{ story, priority, criteria: [`${number}.1 complex`] }]);
});

test.each(["### User Stories", "### Use Case 1", "### USB 3 support", "### US market", "### History 1"])(
  "%s is none",
  (heading) => {
    expect(blocksOf(`${heading}\n\ntext\n`)).toEqual([]);
  },
);

test("steps in separate bullets are one scenario, and labels can be translated", () => {
  const steps = "- **Given** a\n- **When** b\n- **Then** c\n";
  expect(blocksOf(`### US1: x\n\n**Acceptance Criteria:**\n\n${steps}`)[0]?.criteria).toEqual([
    "1.1 complex",
  ]);
  const chinese = "1. **給定** 甲，**當** 乙，**則** 丙\n2. 丁\n";
  expect(blocksOf(`### US1: x\n\n**驗收情境**：\n\n${chinese}`)[0]?.criteria).toEqual([
    "1.1 complex",
    "1.2 unclassified",
  ]);
});

test("a statement needs no bold code", () => {
  const text = "## Requirements\n\n- FR-001: The system MUST a\n- FR-002 is gone\n- **SC-001**: b\n";
  expect(blocksOf(text).map(({ criteria }) => criteria)).toEqual([
    ["FR-001 ubiquitous"],
    ["SC-001 unclassified"],
  ]);
});

test("a statement can follow a dash or be in a numbered list", () => {
  const text =
    "## Requirements\n\n- FR-001 - System MUST pay\n1. **FR-002**: System MUST refund\n2. FR-003: System MUST log\n";
  const { drafts } = speckitAdapter.parse({ path: "specs/001-shop/spec.md", text });
  expect(drafts.map(({ metadata }) => metadata.ears_patterns?.[0])).toMatchObject([
    { number: "FR-001", pattern: "ubiquitous", text: "System MUST pay" },
    { number: "FR-002", text: "System MUST refund" },
    { number: "FR-003", text: "System MUST log" },
  ]);
});
