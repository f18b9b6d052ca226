import { expect, test } from "vitest";
import { processorMs } from "../../../testing/processor-time.ts";
import { scanMarkdown } from "../../markdown/scan-markdown.ts";
import { referencesIn, requirementLinks } from "./requirement-references.ts";

function numbersIn(list: string): string[] {
  return referencesIn(list).map(({ requirement, criterion }) => criterion ?? requirement);
}

test.each([
  ["1.1, 2.3_", ["1.1", "2.3"]],
  ["6_", ["6"]],
  ["Requirement 1, Requirement 4", ["1", "4"]],
  ["US-001, FR-2, 03.04", ["1", "2", "3.4"]],
  ["4.1–4.4, 5.2", ["4.1", "4.2", "4.3", "4.4", "5.2"]],
  ["1 - 3", ["1", "2", "3"]],
  ["1.2-3.4", ["1.2", "3.4"]],
  ["2.1-2.2-2.3", ["2.1", "2.2", "2.3"]],
  ["1.1-1.999999", ["1.1", "1.999999"]],
  ["All requirements", []],
  ["NFR-1, Phase 2, v1.2", []],
  ["see issues/61 and #7", []],
  ["全般", []],
])("%s", (list, expected) => {
  expect(numbersIn(list)).toEqual(expected);
});

function linksOf(text: string): string[] {
  const scan = scanMarkdown(text);
  const links = requirementLinks(scan, [{ from: 1, to: scan.lineCount }], "auth");
  return links.map(({ kind, target, criterion, line }) =>
    `${line} ${kind} ${target} ${criterion ?? ""}`.trim(),
  );
}

test.each([
  ["- _Requirements: 1.1_", ["1 implements fw_a-auth-requirements-req1 1.1"]],
  ["_Requirement: 2_", ["1 implements fw_a-auth-requirements-req2"]],
  ["text _Requirements: 1.1_", ["1 implements fw_a-auth-requirements-req1 1.1"]],
  ["- **Requirements:** 1.1", ["1 implements fw_a-auth-requirements-req1 1.1"]],
  ["  - _要件: 3.5_", ["1 implements fw_a-auth-requirements-req3 3.5"]],
  ["_需求：1.1_", ["1 implements fw_a-auth-requirements-req1 1.1"]],
  ["**Validates: Requirements 1.2**", ["1 validates fw_a-auth-requirements-req1 1.2"]],
  ["- Property x. _Validates: Requirement 4_", ["1 validates fw_a-auth-requirements-req4"]],
  ["**Validates:** 1.1", ["1 validates fw_a-auth-requirements-req1 1.1"]],
  ["**Validates Requirements: 1.1**", ["1 validates fw_a-auth-requirements-req1 1.1"]],
  ["Validates 3 inputs and requirements", []],
  ["- Requirements are 1.1 and 2.2", []],
  ["```\n_Requirements: 1.1_\n```", []],
])("%s", (text, expected) => {
  expect(linksOf(text)).toEqual(expected);
});

test("a requirement is linked once per criterion, from the first line that names it", () => {
  expect(linksOf("_Requirements: 1.1, 1.1, 1.2_\n_Requirements: 1.1_")).toEqual([
    "1 implements fw_a-auth-requirements-req1 1.1",
    "1 implements fw_a-auth-requirements-req1 1.2",
  ]);
});

test("a list of many ranges is read up to a limit", () => {
  const list = Array.from({ length: 300 }, (_, index) => `${index}.1-${index}.200`).join(", ");
  expect(referencesIn(list).length).toBeLessThan(1300);
});

test("hostile lists take linear time", () => {
  const start = processorMs();
  for (const list of ["1-".repeat(200_000), "1.".repeat(200_000), "a".repeat(400_000), "1 ".repeat(200_000)])
    referencesIn(list.slice(0, 4000));
  linksOf("_Requirements: 1-\n".repeat(20_000));
  expect(processorMs() - start).toBeLessThan(2000);
});
