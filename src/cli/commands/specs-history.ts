import { suggest } from "../../base/error-text.ts";
import { criterionHistory, worseCriteria } from "../../project/features/spec-history.ts";
import type { Project } from "../../project/project.ts";
import { readSources } from "../../project/results/results-store.ts";
import type { CriterionState } from "../../protocol/enums.ts";
import type { PastState, WorseCriterion, WorseReport } from "../../protocol/spec-history.ts";
import type { CommandContext, ExitCode } from "../command.ts";
import { toGithubCommand } from "../print/diagnostics.ts";
import type { Style } from "../print/output.ts";
import { type Column, count, placeColumn, printTable } from "../print/table.ts";
import { usageError } from "../report-error.ts";
import { safeLine } from "../text/safe-text.ts";
import { toRefreshOptions } from "../with-project.ts";

interface HistoryOptions {
  readonly keys: readonly string[];
  readonly limit?: number | undefined;
}

/** The most results that one line shows. */
const mostShown = 20;

/** Prints the results of criteria over time, a line each; with --json, every entry. */
export function printHistory(
  project: Project,
  { keys, limit }: HistoryOptions,
  context: CommandContext,
): ExitCode {
  const { output, json } = context;
  const known = readSources(project.specs.all()).criteria.criteria.map(({ id }) => id);
  for (const key of keys) {
    if (known.includes(key)) continue;
    const near = suggest(key, known);
    throw usageError(
      `No spec has the criterion "${key}".`,
      near === undefined ? "'kit specs coverage --all' lists the criteria." : `Did you mean ${near}?`,
    );
  }
  const pages = keys.map((criterion) => ({
    criterion,
    ...criterionHistory(project, { criterion, limit: limit ?? (json ? undefined : mostShown) }),
  }));
  if (json) {
    output.json({ history: pages.flatMap(({ history }) => history) });
    return 0;
  }
  const width = Math.max(...keys.map(({ length }) => length));
  for (const { criterion, history, next_cursor } of pages) {
    const dots = history.toReversed().map(({ state }) => output.style(styles[state], symbols[state]));
    const text = summaryOf(history, { isWhole: next_cursor === undefined });
    output.line(
      `${output.style("cyan", safeLine(criterion.padEnd(width)))}  ${dots.join("")}  ${safeLine(text)}`,
    );
  }
}

const symbols: Readonly<Record<CriterionState, string>> = {
  passing: "●",
  failing: "○",
  partly_run: "◐",
  never_run: "·",
  uncovered: "·",
};

const styles: Readonly<Record<CriterionState, Style>> = {
  passing: "green",
  failing: "red",
  partly_run: "yellow",
  never_run: "dim",
  uncovered: "dim",
};

const words: Readonly<Record<CriterionState, string>> = {
  passing: "passing",
  failing: "failing",
  partly_run: "partly run",
  never_run: "not run",
  uncovered: "without a test",
};

/** `passing since 3f2a1c9 (2026-11-20), failed once at 9b01c2d (flaky: same tree passed)`. Newest first. */
function summaryOf(history: readonly PastState[], { isWhole }: { readonly isWhole: boolean }): string {
  const [current] = history;
  if (current === undefined) return "no report has its tests";
  // A flaky result tells nothing about its commit, so it does not interrupt the others.
  const end = history.findIndex(({ state, flaky }) => state !== current.state && flaky !== true);
  const stretch = end === -1 ? history : history.slice(0, end);
  const first = stretch.findLast(({ state }) => state === current.state) ?? current;
  const since = `${words[current.state]} since ${whereOf(first)}`;
  const open = end === -1 && !isWhole ? " or earlier" : "";
  if (current.state === "failing")
    return `${since}${open}${current.flaky === true ? " (flaky: same tree passed)" : ""}`;
  const failures = history.filter(({ state }) => state === "failing");
  const [last] = failures;
  if (last === undefined) return `${since}${open}`;
  const times = failures.length === 1 ? "once" : `${failures.length} times, last`;
  const flaky = last.flaky === true ? " (flaky: same tree passed)" : "";
  return `${since}${open}, failed ${times} at ${commitOf(last) ?? dayOf(last)}${flaky}`;
}

function whereOf(past: PastState): string {
  const commit = commitOf(past);
  return commit === undefined ? dayOf(past) : `${commit} (${dayOf(past)})`;
}

function commitOf({ commit, dirty }: PastState): string | undefined {
  return commit === undefined ? undefined : `${commit.slice(0, 7)}${dirty === true ? " with changes" : ""}`;
}

const dayOf = ({ recorded_at }: PastState): string => recorded_at.slice(0, 10);

const columns: readonly Column<WorseCriterion>[] = [
  { header: "CRITERION", value: ({ criterion }) => criterion, style: () => "cyan" },
  { header: "NOW", value: ({ state }) => words[state], style: ({ state }) => styles[state] },
  placeColumn(({ path, line }) => ({ path, line })),
];

interface WorseOptions {
  readonly than: string;
  readonly format?: "text" | "github" | undefined;
}

/** Prints the criteria that passed on another commit and do not pass here; exits with 1 if there are some. */
export async function printWorse(
  project: Project,
  { than, format }: WorseOptions,
  context: CommandContext,
): Promise<ExitCode> {
  const { output } = context;
  const report = await worseCriteria(project, { than, ...toRefreshOptions(context) });
  const { worse, commit } = report;
  output.progress("");
  const there = `${than} (${commit.slice(0, 7)})`;
  if (context.json) output.json(report);
  else if (format === "github") {
    for (const { criterion, state, path, line } of worse) {
      const message = `It passed at ${there}, and is ${words[state]} here.`;
      output.line(toGithubCommand("error", { path, line, title: `${criterion} is worse`, message }));
    }
  } else printTable(output, worse, columns);
  if (!context.json) for (const note of notesOn(report, there)) output.note(safeLine(note));
  return worse.length > 0 ? 1 : 0;
}

function notesOn({ worse, passed, gone, stale }: WorseReport, there: string): readonly string[] {
  const of = `${count(passed, "criterion", "criteria")} that passed at ${there}`;
  return [
    ...(gone.length > 0 ? [`No spec has these any more: ${gone.join(", ")}.`] : []),
    ...(stale > 0
      ? [
          `${count(stale, "result")} here ${stale === 1 ? "is" : "are"} older than the code: run the tests, and record their report.`,
        ]
      : []),
    worse.length === 0
      ? `Of ${of}, none is worse here.`
      : `Of ${of}, ${worse.length} ${worse.length === 1 ? "does" : "do"} not pass here.`,
  ];
}
