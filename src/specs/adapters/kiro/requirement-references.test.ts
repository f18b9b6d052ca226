import { expect, test } from "vitest";
import { processorMs } from "../../../testing/processor-time.ts";
import { scanMarkdown } from "../../markdown/scan-markdown.ts";
import { namesIn, requirementLabels, requirementLinks } from "./kiro-document.ts";

function numbersIn(list: string): string[] {
  return namesIn(list).map(({ target, number }) =>
    target.startsWith("req") ? number : `${target} ${number}`,
  );
}

test.each([
  ["1.1, 2.3_", ["1.1", "2.3"]],
  ["6_", ["6"]],
  ["Requirement 1, Requirement 4", ["1", "4"]],
  ["US-001, FR-2, 03.04", ["us-1 US-001", "fr-2 FR-2", "3.4"]],
  ["4.1–4.4, 5.2", ["4.1", "4.2", "4.3", "4.4", "5.2"]],
  ["1 - 3", ["1", "2", "3"]],
  ["1.2-3.4", ["1.2", "3.4"]],
  ["2.1-2.2-2.3", ["2.1", "2.2", "2.3"]],
  ["1.1-1.999999", ["1.1", "1.999999"]],
  ["NFR-1, Phase 2, v1.2", ["nfr-1 NFR-1"]],
  ["see issues/61 and #7", []],
  ["1.1, 1.2 and 1.4", ["1.1", "1.2", "1.4"]],
  ["Req 3, R4.2, REQ-5, requirement #6", ["3", "4.2", "5", "6"]],
  ["1.1 through 1.3; 2.1 to 2.2", ["1.1", "1.2", "1.3", "2.1", "2.2"]],
  ["AC-1.1, AC-2.3", ["1.1", "2.3"]],
  ["AC-4.1 through AC-4.3", ["4.1", "4.2", "4.3"]],
  ["AC-2", ["ac-2 AC-2"]],
  ["AC-001-AC-003", ["ac-1 AC-1", "ac-2 AC-2", "ac-3 AC-3"]],
  ["AC-1〜AC-2, NFR-1〜NFR-2", ["ac-1 AC-1", "ac-2 AC-2", "nfr-1 NFR-1", "nfr-2 NFR-2"]],
  ["US-2, US-4.1, US-1.AC-3", ["us-2 US-2", "us-4 4.1", "us-1 1.3"]],
  ["NFR-PERF-006, US-MP-4, FR-A1", ["nfr-perf-6 NFR-PERF-006", "us-mp-4 US-MP-4", "fr-a-1 FR-A-1"]],
  ["FR-001, SC-002", ["fr-1 FR-001", "sc-2 SC-002"]],
  ["NFR1, RNF 2, NFR-3.5", ["nfr-1 NFR-1", "rnf-2 RNF-2", "nfr-3 NFR-3.5"]],
  ["FR-3 (Real-Time Updates v2), NFR-2 (Scalability)", ["fr-3 FR-3", "nfr-2 NFR-2"]],
  ["All requirements (REQ-1, REQ-2)", ["* *"]],
  ["All", ["* *"]],
  ["all requirements validation", ["* *"]],
  ["Foundation for all requirements", ["* *"]],
  ["全般", ["* *"]],
  ["全要件の品質保証", ["* *"]],
  ["All documentation requirements", []],
  ["Maintainability improvement", []],
  ["1.1 | Success: 3 tests pass", ["1.1", "3"]],
])("%s", (list, expected) => {
  expect(numbersIn(list)).toEqual(expected);
});

function linksOf(text: string): string[] {
  const scan = scanMarkdown(text);
  const labels = requirementLabels(scan, [{ from: 1, to: scan.lineCount }]);
  const links = requirementLinks(labels, "auth");
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
  [
    "_Requisitos: 1.1, 1.2_",
    ["1 implements fw_a-auth-requirements-req1 1.1", "1 implements fw_a-auth-requirements-req1 1.2"],
  ],
  ["- **Valida: Requisitos 2.1**", ["1 validates fw_a-auth-requirements-req2 2.1"]],
  ["- [ ] 1. Write _Requirements: AC-7_ _Design: 3.4_", ["1 implements fw_a-auth-requirements-ac-7 AC-7"]],
  ["  - _Requirements: 1.1 | Success: 3 tests pass", ["1 implements fw_a-auth-requirements-req1 1.1"]],
  ["_Requirements: All_", ["1 implements fw_a-auth-requirements-*"]],
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
  expect(namesIn(list).length).toBeLessThan(1300);
});

test("hostile lists take linear time", () => {
  const start = processorMs();
  for (const list of ["1-".repeat(200_000), "1.".repeat(200_000), "a".repeat(400_000), "1 ".repeat(200_000)])
    namesIn(list.slice(0, 4000));
  linksOf("_Requirements: 1-\n".repeat(20_000));
  expect(processorMs() - start).toBeLessThan(2000);
});
