import type { SyncEntry, SyncPlan } from "../../protocol/sync.ts";
import { parseSyncFormat, sourceLabel, syncNames } from "../choices.ts";
import { type Command, defineCommand, flag, listOption, option } from "../command.ts";
import { count, noteLosses } from "../print/document.ts";
import type { Output, Style } from "../print/output.ts";
import { printTable } from "../print/table.ts";
import { usageError } from "../report-error.ts";
import { safeLine, safeLines } from "../text/safe-text.ts";
import { withProject } from "../with-project.ts";

export const guidelinesSync: Command = defineCommand({
  options: {
    from: option("--from <name>", `The one source of truth: ${syncNames}`, parseSyncFormat),
    to: listOption(
      "--to <names>",
      "What to write, of the same names, with commas between (default: every other format that is there)",
      parseSyncFormat,
    ),
    write: flag("-w, --write", "Write the files"),
    adopt: flag(
      "--adopt",
      "Take over into the source what people wrote in the targets, so that kit keeps those files",
    ),
    check: flag("--check", "Write nothing, and end with 1 when a file is not up to date (for CI)"),
    overwrite: flag("--overwrite", "With --write: also files that were edited by hand"),
  },
  examples: [
    "kit guidelines sync --from claude",
    "kit guidelines sync --from agents --to cursor,steering --write",
    "kit guidelines sync --from agents --to claude,cursor --adopt",
    "kit guidelines sync --check",
  ],
  details:
    "Without --write, shows each file with what would change in it. The configuration can name the source and the targets: guidelines.source, guidelines.targets.",
  run: ({ options }, context) =>
    withProject(context, async ({ project }) => {
      const { from, to, write = false, check = false, overwrite = false, adopt = false } = options;
      if (write && check) throw usageError("--write and --check exclude each other.");
      const request = {
        ...(from === undefined ? {} : { source: from }),
        ...(to === undefined ? {} : { targets: to }),
        ...(adopt ? { adopt } : {}),
      };
      const result = write ? await project.guidelines.sync({ ...request, overwrite }) : undefined;
      const plan = result ?? (await project.guidelines.planSync(request));
      if (context.json) context.output.json(plan);
      else printPlan(context.output, plan, result?.written);
      const isConflicted = result !== undefined && leftAlone(result, result.written).length > 0;
      return isConflicted || (check && !plan.in_sync) ? 1 : 0;
    }),
});

const styles: Readonly<Record<SyncEntry["action"], Style>> = {
  create: "green",
  update: "yellow",
  delete: "red",
  conflict: "red",
  unchanged: "dim",
};

/** Prints what a sync would do, or, with the files that it wrote, what it did. */
function printPlan(output: Output, plan: SyncPlan, written?: readonly string[]): void {
  const kept = leftAlone(plan, written ?? []);
  const isReplaced = (entry: SyncEntry): boolean => entry.action === "conflict" && !kept.includes(entry);
  if (plan.entries.length > 0)
    printTable(output, plan.entries, [
      {
        header: "ACTION",
        value: (entry) => (isReplaced(entry) ? "replace" : entry.action),
        style: (entry) => styles[entry.action],
      },
      { header: "FILE", value: ({ path }) => path },
      { header: "FORMAT", value: ({ format }) => sourceLabel(format) },
    ]);
  for (const entry of plan.entries) if (entry.action !== "unchanged") printDiff(output, entry);
  for (const sentence of plan.read_directly)
    output.note(`${output.noteStyle("dim", "nothing to write:")} ${safeLine(sentence)}`);
  for (const sentence of plan.left_out)
    output.note(`${output.noteStyle("yellow", "left out:")} ${safeLine(sentence)}`);
  for (const { path, reason } of kept) {
    output.note(`${output.noteStyle("red", "conflict:")} ${safeLine(`${path}: ${reason ?? ""}`)}`);
  }
  for (const { path, losses } of plan.entries) {
    noteLosses(
      output,
      losses.map((loss) => `${path}: ${loss}`),
    );
  }
  const pending = plan.entries.filter(({ action }) => action !== "unchanged").length - kept.length;
  const source = `${count(plan.guidelines, "guideline")} of ${sourceLabel(plan.source)}`;
  if (plan.in_sync && plan.entries.length === 0 && plan.read_directly.length > 0)
    output.note(`${output.noteStyle("green", "✓")} Nothing needs to be written.`);
  else if (plan.in_sync)
    output.note(`${output.noteStyle("green", "✓")} Everything is up to date with ${source}.`);
  else if (written) output.note(`${count(written.length, "file")} written from ${source}.`);
  else if (pending > 0) output.note(`${count(pending, "file")} to write from ${source}: --write does it.`);
  if (kept.length > 0)
    output.note(`${count(kept.length, "file")} left alone: --write --overwrite replaces what is there.`);
}

/** More lines of one file than these are only counted. */
const mostLines = 200;

/** Prints the changes of a file as `diff -u` does; for people only, as scripts take `--json`. */
function printDiff(output: Output, { path, before = "", after, reason }: SyncEntry): void {
  if (!output.isTerminal) return;
  const lines = lineDiff(before, after ?? "");
  if (lines.length === 0) return;
  output.line();
  output.line(output.style("bold", safeLine(path)));
  if (reason !== undefined) output.line(output.style("dim", safeLine(reason)));
  for (const line of lines.slice(0, mostLines)) {
    const style = line.startsWith("+") ? "green" : line.startsWith("-") ? "red" : "dim";
    // White space counts in a diff.
    output.line(output.style(style, safeLines(line).replaceAll("\n", " ")));
  }
  if (lines.length > mostLines)
    output.line(`… ${count(lines.length - mostLines, "more line")}; --json has all of it.`);
}

/** Files that a person wrote, which a sync only changes with `--overwrite`. */
function leftAlone(plan: SyncPlan, written: readonly string[]): readonly SyncEntry[] {
  return plan.entries.filter(({ action, path }) => action === "conflict" && !written.includes(path));
}

/** Lines around a change that are shown with it. */
const contextLines = 3;
/** A change of more lines than this squared is shown as all of the old, then all of the new. */
const maxCells = 4_000_000;

type Step = readonly [mark: " " | "-" | "+", line: string];

/** The lines that differ between two texts, as `diff -u` shows them, without the names of files. */
export function lineDiff(before: string, after: string): readonly string[] {
  const steps = stepsBetween(linesOf(before), linesOf(after));
  const shown = new Set<number>();
  for (const [at, [mark]] of steps.entries()) {
    if (mark === " ") continue;
    for (let near = Math.max(0, at - contextLines); near <= at + contextLines; near += 1) shown.add(near);
  }
  const lines: string[] = [];
  let [oldLine, newLine] = [1, 1];
  for (const [at, [mark, line]] of steps.entries()) {
    if (shown.has(at)) {
      if (!shown.has(at - 1)) lines.push(`@@ -${oldLine} +${newLine} @@`);
      lines.push(`${mark}${line}`);
    }
    if (mark !== "+") oldLine += 1;
    if (mark !== "-") newLine += 1;
  }
  return lines;
}

function linesOf(text: string): readonly string[] {
  const lines = text.split(/\r\n|\n|\r/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

function stepsBetween(before: readonly string[], after: readonly string[]): readonly Step[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  const most = Math.min(before.length, after.length) - start;
  while (end < most && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  const same = (line: string): Step => [" ", line];
  return [
    ...before.slice(0, start).map(same),
    ...middleSteps(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...before.slice(before.length - end).map(same),
  ];
}

/** The longest common subsequence of lines, from the end, so that the steps come in order. */
function middleSteps(before: readonly string[], after: readonly string[]): readonly Step[] {
  const width = after.length + 1;
  if (before.length * width > maxCells)
    return [...before.map((line): Step => ["-", line]), ...after.map((line): Step => ["+", line])];
  const lengths = new Uint32Array((before.length + 1) * width);
  const at = (row: number, column: number): number => lengths[row * width + column] ?? 0;
  for (let row = before.length - 1; row >= 0; row -= 1)
    for (let column = after.length - 1; column >= 0; column -= 1)
      lengths[row * width + column] =
        before[row] === after[column]
          ? at(row + 1, column + 1) + 1
          : Math.max(at(row + 1, column), at(row, column + 1));
  const steps: Step[] = [];
  let [row, column] = [0, 0];
  while (row < before.length || column < after.length) {
    const [old, next] = [before[row], after[column]];
    if (old !== undefined && old === next) {
      steps.push([" ", old]);
      row += 1;
      column += 1;
    } else if (old !== undefined && (next === undefined || at(row + 1, column) >= at(row, column + 1))) {
      steps.push(["-", old]);
      row += 1;
    } else {
      steps.push(["+", next ?? ""]);
      column += 1;
    }
  }
  return steps;
}
