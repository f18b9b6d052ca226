import type { SyncEntry, SyncFormat, SyncPlan } from "../../protocol/sync.ts";
import { parseSyncFormat, sourceLabel } from "../choices.ts";
import { type Command, defineCommand, flag, listOption, option } from "../command.ts";
import type { Output, Style } from "../output.ts";
import { count } from "../render/places.ts";
import { noteLosses } from "../render/print-document.ts";
import { usageError } from "../report-error.ts";
import { printTable } from "../table.ts";
import { safeLine } from "../text/safe-text.ts";
import { withProject } from "../with-project.ts";

export const guidelinesSync: Command = defineCommand({
  options: {
    from: option(
      "--from <name>",
      "The one source of truth: agents, claude, cursor or steering",
      parseSyncFormat,
    ),
    to: listOption(
      "--to <names>",
      "What to write, with commas between (default: every other format that is there)",
      parseSyncFormat,
    ),
    write: flag("-w, --write", "Write the files"),
    check: flag("--check", "Write nothing, and end with 1 when a file is not up to date (for CI)"),
    overwrite: flag("--overwrite", "With --write: also files that somebody edited by hand"),
  },
  examples: [
    "kit guidelines sync --from claude",
    "kit guidelines sync --from agents --to cursor,steering --write",
    "kit guidelines sync --check",
  ],
  details:
    "Without --write, says what would be written. The configuration can name the source and the targets: guidelines.source, guidelines.targets.",
  run: ({ options }, context) =>
    withProject(context, async ({ project }) => {
      const { from, to, write = false, check = false, overwrite = false } = options;
      if (write && check) throw usageError("--write and --check exclude each other.");
      const request = {
        ...(from === undefined ? {} : { source: from }),
        ...(to === undefined ? {} : { targets: to }),
      };
      const plan = write
        ? await project.guidelines.sync({ ...request, overwrite })
        : await project.guidelines.planSync(request);
      if (context.json) context.output.json(plan);
      else printPlan(context.output, plan, { isWritten: write });
      const conflicts = plan.entries.some((entry) => entry.action === "conflict");
      return (check && !plan.in_sync) || (write && conflicts && !overwrite) ? 1 : 0;
    }),
});

const styles: Readonly<Record<SyncEntry["action"], Style>> = {
  create: "green",
  update: "yellow",
  delete: "red",
  conflict: "red",
  unchanged: "dim",
};

function printPlan(output: Output, plan: SyncPlan, { isWritten }: { readonly isWritten: boolean }): void {
  printTable(output, plan.entries, [
    { header: "ACTION", value: ({ action }) => action, style: ({ action }) => styles[action] },
    { header: "FILE", value: ({ path }) => path },
    { header: "FORMAT", value: ({ format }) => labelOf(format) },
    { header: "REASON", value: ({ reason = "" }) => reason, style: () => "dim", cut: "end" },
  ]);
  for (const { path, losses } of plan.entries)
    noteLosses(
      output,
      losses.map((loss) => `${safeLine(path)}: ${loss}`),
    );
  const pending = plan.entries.filter(
    (entry) => entry.action !== "unchanged" && entry.action !== "conflict",
  ).length;
  const conflicts = plan.entries.filter((entry) => entry.action === "conflict").length;
  const source = `${count(plan.guidelines, "guideline")} of ${labelOf(plan.source)}`;
  if (plan.in_sync) output.note(`${output.noteStyle("green", "✓")} Everything is up to date with ${source}.`);
  else if (isWritten) output.note(`${count(pending, "file")} written from ${source}.`);
  else if (pending > 0) output.note(`${count(pending, "file")} to write from ${source}: --write does it.`);
  if (conflicts > 0) {
    output.note(
      `${count(conflicts, "file")} left alone, edited by hand: --write --overwrite replaces the edits.`,
    );
  }
}

function labelOf(format: SyncFormat): string {
  return sourceLabel(format);
}
