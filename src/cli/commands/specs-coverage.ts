import { pageCoverage, specCoverage } from "../../project/features/coverage.ts";
import type { Project } from "../../project/project.ts";
import type {
  CoverageCount,
  CoveragePage,
  CriterionCoverage,
  FeatureCoverage,
} from "../../protocol/coverage.ts";
import type { CriterionState } from "../../protocol/enums.ts";
import { isTestPath } from "../../specs/model/mentions.ts";
import { asText, wholeNumber } from "../choices.ts";
import { type Command, type CommandContext, defineCommand, flag, listOption, option } from "../command.ts";
import { toProjectPath } from "../find-root.ts";
import { remarkFormat, toGithubCommand } from "../print/diagnostics.ts";
import type { Output, Style } from "../print/output.ts";
import { type Column, count, formatLocation, placeColumn, printTable } from "../print/table.ts";
import { usageError } from "../report-error.ts";
import { safeLine } from "../text/safe-text.ts";
import { toRefreshOptions, withProject } from "../with-project.ts";
import { printHistory, printWorse } from "./specs-history.ts";

export const specsCoverage: Command = defineCommand({
  arguments: [{ usage: "[file]", description: "A test file: list only the criteria that it names" }],
  options: {
    feature: listOption("--feature <names>", "Only these features, separated by commas", asText),
    failUnder: option(
      "--fail-under <percent>",
      "Exit with 1 when fewer percent are covered",
      wholeNumber(0, 100),
    ),
    history: listOption(
      "--history <keys>",
      "How the tests of these criteria ended over time, such as checkout#1.2",
      asText,
    ),
    worseThan: option(
      "--worse-than <revision>",
      "List the criteria that passed on that commit and do not pass here; exit with 1 if there are some",
      asText,
    ),
    format: remarkFormat,
    all: flag("-a, --all", "List every criterion with its tests"),
    limit: option("-n, --limit <number>", "The most to list, 1 to 1,000 (default 50)", wholeNumber(1, 1000)),
    cursor: option("--cursor <cursor>", "Start at the next_cursor of an earlier --json", asText),
  },
  examples: [
    "kit specs coverage",
    "kit specs coverage --feature checkout --all",
    "kit specs coverage src/cart/cart.test.ts",
    "kit specs coverage --fail-under 80",
    "kit specs coverage --history checkout#1.2",
    "kit specs coverage --worse-than origin/main",
    "kit specs coverage --format github",
  ],
  details:
    "A test covers a criterion when it names it: by path, by requirement number within its feature, or by key such as checkout#1.2. A test with similar words is only a suggestion. --history and --worse-than use the reports that 'kit specs results' and 'kit specs verify' have recorded.",
  run: ({ args: [name], options }, context) =>
    withProject(context, async ({ project }) => {
      const file = name === undefined ? undefined : toTestFile(name, project, context);
      const { feature, failUnder = 0, all = false, limit, cursor, format, history, worseThan } = options;
      if (history !== undefined && worseThan !== undefined)
        throw usageError("--history and --worse-than exclude each other.");
      if (history !== undefined) return printHistory(project, { keys: history, limit }, context);
      if (worseThan !== undefined) return printWorse(project, { than: worseThan, format }, context);
      const report = await specCoverage(project, {
        ...toRefreshOptions(context),
        ...(feature === undefined ? {} : { features: feature }),
      });
      context.output.progress("");
      // A terminal shows the criteria without tests; --json has the tests of every criterion, like the route.
      const show = all || context.json || file !== undefined ? "all" : "uncovered";
      const printed =
        all && file === undefined
          ? { ...report, total_count: report.criteria.length }
          : pageCoverage(report, { file, show, limit: all ? 1000 : limit, cursor });
      if (context.json) context.output.json(printed);
      else if (format === "github") annotate(context.output, report);
      else if (file !== undefined) printFile(context.output, printed, file);
      else printReport(context.output, printed, { all });
      const { covered, criteria } = report.totals;
      return criteria > 0 && (100 * covered) / criteria < failUnder ? 1 : 0;
    }),
});

function toTestFile(name: string, project: Project, context: CommandContext): string {
  const path = project.realPath(toProjectPath(name, context));
  if (isTestPath(path) && project.files().includes(path)) return path;
  throw usageError(
    `${name} is not a test file of this project.`,
    "A test file has the name of one, such as cart.test.ts, or is in a folder of tests.",
  );
}

/** Prints the criteria that a test file names, with the lines that name them. */
function printFile(output: Output, { criteria, total_count }: CoveragePage, file: string): void {
  const rows = criteria.map((criterion) => {
    return { ...criterion, tests: criterion.tests.filter(({ path }) => path === file) };
  });
  printTable(output, rows, criterionColumns);
  output.note(`${safeLine(file)} names ${count(total_count, "criterion", "criteria")}.`);
}

/** Annotates each criterion without a test at its line. */
function annotate(output: Output, { criteria, totals }: Pick<CoveragePage, "criteria" | "totals">): void {
  for (const { id, text, path, line, tests } of criteria) {
    if (tests.length === 0)
      output.line(toGithubCommand("notice", { path, line, title: `${id} has no test`, message: text }));
  }
  output.note(`${totals.covered} of ${count(totals.criteria, "criterion", "criteria")} covered.`);
}

const featureColumns: readonly Column<FeatureCoverage>[] = [
  { header: "FEATURE", value: ({ feature }) => feature, style: () => "cyan" },
  { header: "CRITERIA", value: ({ criteria }) => String(criteria), align: "right" },
  { header: "COVERED", value: ({ covered }) => String(covered), align: "right" },
  { header: "", value: percentOf, align: "right", style: styleOf },
  { header: "WHERE", value: ({ path }) => path, style: () => "dim" },
];

const criterionColumns: readonly Column<CriterionCoverage>[] = [
  { header: "CRITERION", value: ({ id }) => id, style: () => "cyan" },
  { header: "", value: stateOf, style: ({ state }) => stateStyles[state] },
  { header: "TEXT", value: ({ text }) => text, wraps: true },
  placeColumn(({ path, line }) => ({ path, line })),
  { header: "TESTS", value: testsOf, wraps: true },
];

function printReport(output: Output, report: CoveragePage, { all }: { readonly all: boolean }): void {
  const { totals, by_feature, diagnostics, criteria } = report;
  if (totals.criteria === 0) {
    output.note("This project has no acceptance criteria.");
    return;
  }
  // The list may be long, so the summary comes last.
  if (output.isTerminal && criteria.length > 0) {
    output.line(output.style("bold", all ? "Criteria" : "Without a test"));
  }
  printTable(output, criteria, criterionColumns);
  if (output.isTerminal) {
    if (criteria.length > 0) output.line();
    printTable(output, by_feature, featureColumns);
  }
  for (const { path, line, message } of diagnostics) {
    output.note(
      `${output.noteStyle("yellow", "warning:")} ${safeLine(`${formatLocation(path, line)}: ${message}`)}`,
    );
  }
  if (criteria.length < report.total_count)
    output.note(
      `${criteria.length} of ${report.total_count.toLocaleString("en")} shown; --limit and --all show more.`,
    );
  if (totals.passing + totals.failing + totals.partly_run > 0)
    output.note(
      `Last results: ${totals.passing} passing, ${totals.failing} failing, ${totals.partly_run} partly run, ${totals.never_run} without a result, ${totals.stale} older than the test, the code or the criterion.`,
    );
  const files = count(report.test_files, "test file");
  output.note(
    `${totals.covered} of ${count(totals.criteria, "criterion", "criteria")} covered (${percentOf(totals)}) by ${files}.`,
  );
}

const stateStyles: Readonly<Record<CriterionState, Style>> = {
  passing: "green",
  never_run: "green",
  partly_run: "yellow",
  failing: "red",
  uncovered: "yellow",
};

function stateOf({ state, suggestions }: CriterionCoverage): string {
  // Without a report, kit only knows that a test names the criterion.
  if (state === "never_run") return "covered";
  if (state === "partly_run") return "partly run";
  if (state !== "uncovered") return state;
  return suggestions.length > 0 ? "perhaps" : "missing";
}

function testsOf({ tests, suggestions }: CriterionCoverage): string {
  const [first, ...otherTests] = tests.length > 0 ? tests : suggestions;
  if (!first) return "";
  const moreText = otherTests.length === 0 ? "" : ` and ${otherTests.length} more`;
  return `${formatLocation(first.path, first.line)}${moreText}`;
}

function percentOf({ covered, criteria }: CoverageCount): string {
  return `${Math.floor((100 * covered) / Math.max(1, criteria))} %`;
}

function styleOf({ covered, criteria }: CoverageCount): Style {
  return covered === criteria ? "green" : covered === 0 ? "red" : "yellow";
}
