import { z } from "zod";
import { KitError } from "../../base/kit-error.ts";
import type { SyncEntry, SyncPlan } from "../../protocol/sync.ts";
import {
  parseSyncFormat,
  parseSyncTarget,
  parseSyncWith,
  sourceLabel,
  syncNames,
  syncTargetNames,
} from "../choices.ts";
import { type Command, defineCommand, flag, listOption, option } from "../command.ts";
import { printLineDiff } from "../print/line-diff.ts";
import type { Output, Style } from "../print/output.ts";
import { count, noteLosses, printTable } from "../print/table.ts";
import { readPreview } from "../read-preview.ts";
import { usageError } from "../report-error.ts";
import { safeLine } from "../text/safe-text.ts";
import { withProject } from "../with-project.ts";

export const guidelinesSync: Command = defineCommand({
  options: {
    from: option("--from <name>", `The format to sync from: ${syncNames}`, parseSyncFormat),
    to: listOption(
      "--to <names>",
      `The formats to write, separated by commas (default: every other format that the project has): ${syncTargetNames}`,
      parseSyncTarget,
    ),
    with: listOption(
      "--with <what>",
      "Also copy skills, and write the settings of MCP servers: skills, mcp; skills=claude names whose (default: .agents/skills, and mcp.servers of kit's configuration)",
      parseSyncWith,
    ),
    write: flag("-w, --write", "Write the files"),
    adopt: flag(
      "--adopt",
      "Move hand-written guidelines of the targets into the source first, so that kit can then write those files",
    ),
    check: flag("--check", "Write nothing, and exit with 1 when a file is not up to date (for CI)"),
    plan: option(
      "--plan <file>",
      "With --write: the output of an earlier --json; writes nothing if the result would differ from it",
      String,
    ),
    overwrite: flag("--overwrite", "With --write: replace files that were edited by hand, too"),
  },
  examples: [
    "kit guidelines sync --from claude",
    "kit guidelines sync --from agents --to cursor,steering --write",
    "kit guidelines sync --from agents --to claude,cursor --adopt",
    "kit guidelines sync --from agents --to claude --json > plan.json",
    "kit guidelines sync --from agents --to claude --write --plan plan.json",
    "kit guidelines sync --check",
  ],
  details:
    "Without --write, shows the changes of each file. --check without a source of truth has nothing to compare, and exits with 0. The configuration can name the source, the targets, and what else to write: guidelines.source, guidelines.targets, guidelines.with.",
  run: ({ options }, context) =>
    withProject(context, async ({ project }) => {
      const {
        from,
        to,
        with: items,
        plan: file,
        write = false,
        check = false,
        overwrite = false,
        adopt = false,
      } = options;
      if (write && check) throw usageError("--write and --check exclude each other.");
      if (file !== undefined && !write) throw usageError("--plan needs --write.");
      const expected =
        file === undefined ? undefined : readPreview(planSchema, { file, cwd: context.cwd }).entries;
      const request = {
        source: from,
        targets: to,
        ...(items === undefined ? {} : { with: Object.assign({}, ...items) }),
        ...(adopt ? { adopt } : {}),
      };
      const result = write ? await project.guidelines.sync({ ...request, overwrite, expected }) : undefined;
      const plan =
        result ??
        (await project.guidelines.planSync(request).catch((error: unknown) => {
          // A repository that syncs nothing is up to date: CI must not fail on it.
          if (check && error instanceof KitError && error.meta?.missing === "source") return undefined;
          throw error;
        }));
      if (plan === undefined) {
        if (context.json) context.output.json({ entries: [], in_sync: true });
        context.output.note(
          "Nothing to check: no source of truth is set. --from or guidelines.source names one.",
        );
        return 0;
      }
      if (context.json) context.output.json(plan);
      else printPlan(context.output, plan, result?.written);
      const isConflicted = result !== undefined && leftAlone(result, result.written).length > 0;
      return isConflicted || (check && !plan.in_sync) ? 1 : 0;
    }),
});

const planSchema = z.object({
  entries: z.array(z.object({ path: z.string(), digest: z.string() })),
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
  const unchanged = leftAlone(plan, written ?? []);
  const isReplaced = (entry: SyncEntry): boolean => entry.action === "conflict" && !unchanged.includes(entry);
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
  for (const { path, reason } of unchanged) {
    output.note(`${output.noteStyle("red", "conflict:")} ${safeLine(`${path}: ${reason ?? ""}`)}`);
  }
  for (const { path, losses } of plan.entries) {
    noteLosses(
      output,
      losses.map((loss) => `${path}: ${loss}`),
    );
  }
  const pending = plan.entries.filter(({ action }) => action !== "unchanged").length - unchanged.length;
  const source =
    plan.source === undefined
      ? "its source"
      : `${count(plan.guidelines, "guideline")} of ${sourceLabel(plan.source)}`;
  if (plan.in_sync && plan.entries.length === 0 && plan.read_directly.length > 0)
    output.note(`${output.noteStyle("green", "✓")} Nothing needs to be written.`);
  else if (plan.in_sync)
    output.note(`${output.noteStyle("green", "✓")} Everything is up to date with ${source}.`);
  else if (written) output.note(`${count(written.length, "file")} written from ${source}.`);
  else if (pending > 0) output.note(`${count(pending, "file")} to write from ${source}: --write does it.`);
  if (unchanged.length > 0)
    output.note(`${count(unchanged.length, "file")} left alone: --write --overwrite replaces what is there.`);
}

/** Prints the changes of a file as `diff -u` does; for people only, as scripts take `--json`. */
function printDiff(output: Output, { path, before = "", after, reason }: SyncEntry): void {
  if (output.isTerminal) printLineDiff(output, { path, before, after: after ?? "", remark: reason });
}

/** Hand-written files, which a sync changes only with `--overwrite`. */
function leftAlone(plan: SyncPlan, written: readonly string[]): readonly SyncEntry[] {
  return plan.entries.filter(({ action, path }) => action === "conflict" && !written.includes(path));
}
