import type { CriterionCoverage, ImpactGraph, SpecBlock } from "../../../../src/client/index.ts";
import type { Tone } from "../../ui/chips.tsx";

type Framework = SpecBlock["framework"];
type SpecType = SpecBlock["spec_type"];

const frameworkNames: Readonly<Record<Framework, string>> = {
  fw_a: "Kiro",
  fw_b: "Cursor",
  fw_c: "Claude Code",
  fw_d: "Spec Kit",
  fw_e: "Tessl",
  custom: "Custom",
};

/** The tool of a spec file, as people know it; the server names the tools of features the same. */
export function toolName({ framework, path }: Pick<SpecBlock, "framework" | "path">): string {
  return framework === "custom" && `/${path}`.includes("/openspec/") ? "OpenSpec" : frameworkNames[framework];
}

/** The names of the frameworks in a project with these tools: custom specs can all be those of OpenSpec. */
export function frameworkNamesWith(
  tools: Readonly<Record<string, number>> | undefined,
): Readonly<Record<Framework, string>> {
  const known = new Set(Object.values(frameworkNames).filter((name) => name !== frameworkNames.custom));
  const names = Object.keys(tools ?? {}).filter((name) => !known.has(name));
  return names.length === 0 ? frameworkNames : { ...frameworkNames, custom: names.join(", ") };
}

export const typeNames: Readonly<Record<SpecType, string>> = {
  requirement: "Requirements",
  design: "Design",
  task: "Tasks",
  constraint: "Rules",
};

/** The framework that an address names; `undefined` for any other text. */
export function frameworkOf(text: string | undefined): Framework | undefined {
  return keysOf(frameworkNames).find((one) => one === text);
}

export function typeOf(text: string | undefined): SpecType | undefined {
  return keysOf(typeNames).find((one) => one === text);
}

function keysOf<Key extends string>(record: Readonly<Record<Key, unknown>>): readonly Key[] {
  return Object.keys(record) as Key[];
}

export const states: Readonly<
  Record<CriterionCoverage["state"], { readonly label: string; readonly tone: Tone }>
> = {
  passing: { label: "passing", tone: "good" },
  failing: { label: "failing", tone: "bad" },
  never_run: { label: "never run", tone: "warn" },
  partly_run: { label: "partly run", tone: "warn" },
  uncovered: { label: "no test", tone: "plain" },
};

export const resultTones: Readonly<Record<"passed" | "failed" | "skipped", Tone>> = {
  passed: "good",
  failed: "bad",
  skipped: "plain",
};

/** The causes of a stale result, in words. */
export const staleCauses = {
  test: "the test changed since",
  code: "the code changed since",
  criterion: "the criterion changed since",
} as const;

/** The reason of an edge, as a verb between two names. */
export const edgeReasons: Readonly<Record<ImpactGraph["edges"][number]["kind"], string>> = {
  defines: "holds",
  code_ref: "names the file",
  test_ref: "names the test",
  implements: "implements",
  validates: "validates",
  related: "refers to",
  same_feature: "lies in the feature of",
  covered_by: "has a criterion that is named in",
};
