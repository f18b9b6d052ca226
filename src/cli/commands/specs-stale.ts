import { acceptStale, pageStale, staleSpecs } from "../../project/features/stale.ts";
import type { ProjectSpecs } from "../../project/project.ts";
import { createSpecNames } from "../../project/query/spec-names.ts";
import type { StaleFile, StalePage, StaleSpec } from "../../protocol/stale.ts";
import { asText, wholeNumber } from "../choices.ts";
import { type Command, defineCommand, flag, listOption, option } from "../command.ts";
import { findSpec } from "../find-record.ts";
import type { Output } from "../print/output.ts";
import { type Column, count, placeColumn, printTable } from "../print/table.ts";
import { usageError } from "../report-error.ts";
import { safeLine } from "../text/safe-text.ts";
import { withProject } from "../with-project.ts";

export const specsStale: Command = defineCommand({
  options: {
    accept: listOption(
      "--accept <ids...>",
      "Record that these specs still describe the code as it is now",
      asText,
    ),
    acceptAll: flag("--accept-all", "Record that for every stale spec"),
    limit: option("-n, --limit <number>", "The most to list, 1 to 1,000 (default 50)", wholeNumber(1, 1000)),
    cursor: option("--cursor <cursor>", "Start at the next_cursor of an earlier --json", asText),
    all: flag("-a, --all", "List all of them"),
    check: flag("--check", "Exit with 1 when a spec is stale (for CI)"),
  },
  examples: [
    "kit specs stale",
    "kit specs stale --accept fw_a-checkout-design-cart",
    "kit specs stale --check",
  ],
  details:
    "A spec is stale when a file that it names differs from the commit that changed the lines of the spec last. Spaces do not count. Acceptances are stored in a file that belongs in Git.",
  run: ({ options }, context) =>
    withProject(context, async ({ project }) => {
      const { output, signal } = context;
      const { accept, acceptAll = false, check = false, all = false, limit, cursor } = options;
      if (accept !== undefined && acceptAll)
        throw usageError("--accept and --accept-all exclude each other.");
      if (accept !== undefined || acceptAll) {
        const ids = accept?.map((id) => findSpec(project, id).id);
        const acceptance = await acceptStale(project, { signal, ids });
        if (context.json) output.json(acceptance);
        else if (acceptance.written_to === undefined)
          output.line("Nothing to accept: these specs are not stale.");
        else
          output.line(
            `Accepted ${count(acceptance.accepted.length, "spec")} in ${acceptance.written_to}; commit it.`,
          );
        return 0;
      }
      const report = await staleSpecs(project, { signal });
      const page = { limit, cursor };
      const printed = all ? { ...report, total_count: report.stale.length } : pageStale(report, page);
      if (context.json) output.json(printed);
      else printReport(output, project.specs, printed);
      return check && report.stale.length > 0 ? 1 : 0;
    }),
});

const columnsFor = (specs: ProjectSpecs): readonly Column<StaleSpec>[] => [
  { header: "SPEC", value: ({ id }) => id, forPeople: nameForPeople(specs), style: () => "cyan" },
  { header: "TITLE", value: ({ title }) => title, wraps: true },
  {
    header: "SPEC CHANGED",
    value: ({ base, updated_at }) => `${base.slice(0, 7)} (${updated_at.slice(0, 10)})`,
  },
  { header: "CODE CHANGED", value: ({ files }) => files.map(changeOf).join(", "), wraps: true },
  placeColumn(({ path, line }) => ({ path, line })),
];

function nameForPeople(specs: ProjectSpecs): (spec: StaleSpec) => string {
  const { nameOf } = createSpecNames(specs);
  return ({ id, path }) => nameOf({ id, path, framework: specs.frameworkOf(path) ?? "custom" });
}

/** `src/cart.ts (2026-11-20, 2 commits, +10 -3)`. */
function changeOf({ path, changed_at, commit, commits, lines_added, lines_removed }: StaleFile): string {
  const parts = [
    commit === undefined ? "not committed" : (changed_at ?? "").slice(0, 10),
    ...(commits === undefined ? [] : [count(commits, "commit")]),
    ...(lines_added === undefined ? [] : [`+${lines_added} -${lines_removed ?? 0}`]),
  ];
  return `${path} (${parts.join(", ")})`;
}

function printReport(
  output: Output,
  specs: ProjectSpecs,
  { stale, total_count: total, checked, notes }: StalePage,
): void {
  printTable(output, stale, columnsFor(specs));
  for (const note of notes) output.note(`${output.noteStyle("yellow", "note:")} ${safeLine(note)}`);
  const all = `of ${count(checked, "spec")} that ${checked === 1 ? "names" : "name"} code`;
  if (stale.length < total)
    output.note(`${stale.length} of ${total.toLocaleString("en")} shown; --limit and --all show more.`);
  if (total > 0) output.note(`${total.toLocaleString("en")} stale, ${all}.`);
  else if (checked === 0) output.note("No spec names code of the project, so none can be stale.");
  else if (notes.length === 0) output.note(`${output.noteStyle("green", "✓")} No spec is stale, ${all}.`);
}
