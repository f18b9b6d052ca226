import { isNamed } from "../../project/features/coverage.ts";
import type { FaultCount } from "../../protocol/verdict.ts";
import type { ChosenCriterion, NamingTest } from "./select-criteria.ts";
import type { TestCase, TestRun } from "./workplace.ts";

/** A criterion that is judged, and the tests that name it. */
export interface Judged extends ChosenCriterion {
  readonly id: string;
  readonly namingTests: readonly NamingTest[];
  readonly count: { -readonly [Name in keyof FaultCount]: number };
}

type Status = "passed" | "failed" | "skipped" | "absent";

/** The cases of a run that belong to a place. */
export function casesAt(
  cases: readonly TestCase[],
  { path, titles }: Pick<NamingTest, "path" | "titles">,
): readonly TestCase[] {
  return cases.filter(
    (one) =>
      (one.path === path || one.path === "") &&
      (titles === undefined || titles.some((title) => isNamed(one, title))),
  );
}

/** Whether a run tells anything about a file: `node --test` reports one that does not load by its name. */
export function hasFile({ cases }: TestRun, path: string): boolean {
  return cases.some((one) => one.path === path || one.titles.some((title) => title.endsWith(path)));
}

export function statusOf(cases: readonly TestCase[], { path, titles }: TestCase): Status {
  const name = titles.join("\0");
  const found = cases.filter((one) => one.path === path && one.titles.join("\0") === name);
  if (found.length === 0) return "absent";
  if (found.some(({ status }) => status === "failed")) return "failed";
  return found.every(({ status }) => status === "passed") ? "passed" : "skipped";
}

export function passes({ cases }: TestRun, place: NamingTest): boolean {
  const found = casesAt(cases, place);
  return found.length > 0 && found.every(({ status }) => status === "passed");
}

export function filesOf(judged: readonly Judged[]): readonly string[] {
  return [...new Set(judged.flatMap(({ namingTests }) => namingTests.map(({ path }) => path)))];
}

export function quoted({ titles, path }: TestCase): string {
  return `"${titles.at(-1) ?? ""}"${path === "" ? "" : ` (${path})`}`;
}

export function titleOf({ titles, path, line }: NamingTest): string {
  return `"${titles?.join('", "') ?? path}" (${path}:${line})`;
}
