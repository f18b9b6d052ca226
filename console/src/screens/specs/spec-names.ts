import type { CriterionCoverage, SpecBlock } from "../../../../src/client/index.ts";
import type { Tone } from "../../ui/chips.tsx";

export const frameworkNames: Readonly<Record<SpecBlock["framework"], string>> = {
  fw_a: "Kiro",
  fw_b: "Cursor",
  fw_c: "Claude Code",
  fw_d: "Spec Kit",
  fw_e: "Tessl",
  custom: "Custom",
};

export const states: Readonly<
  Record<CriterionCoverage["state"], { readonly label: string; readonly tone: Tone }>
> = {
  passing: { label: "passing", tone: "good" },
  failing: { label: "failing", tone: "bad" },
  never_run: { label: "never run", tone: "warn" },
  uncovered: { label: "no test", tone: "plain" },
};

export const resultTones: Readonly<Record<"passed" | "failed" | "skipped", Tone>> = {
  passed: "good",
  failed: "bad",
  skipped: "plain",
};
