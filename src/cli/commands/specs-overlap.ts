import { specOverlaps } from "../../project/features/overlap.ts";
import type { Overlap, OverlapPart, OverlapReport } from "../../project/features/overlap-sides.ts";
import { asText } from "../choices.ts";
import { type Command, defineCommand, flag, listOption, option } from "../command.ts";
import { remarkFormat, toGithubCommand } from "../print/diagnostics.ts";
import type { Output } from "../print/output.ts";
import { type Column, count, placeColumn, printTable } from "../print/table.ts";
import { safeLine } from "../text/safe-text.ts";
import { withProject } from "../with-project.ts";

export const specsOverlap: Command = defineCommand({
  options: {
    base: option(
      "--base <revision>",
      "The branch that changes are merged into; default: the main branch",
      asText,
    ),
    branches: listOption("--branches <globs>", "Also compare these branches, such as origin/*", asText),
    check: flag("--check", "Exit with 1 when something overlaps (for CI)"),
    format: remarkFormat,
  },
  examples: [
    "kit specs overlap",
    "kit specs overlap --base origin/main --branches 'origin/*'",
    "kit specs overlap --check --format github",
  ],
  details:
    "Lists requirements that several open changes of OpenSpec claim, those that an open change modifies and the base has changed since the branch began, and blocks of Kiro and Spec Kit that two branches have changed in different words. Reads other branches from Git's objects and checks nothing out: fetch them first.",
  run: ({ options }, context) =>
    withProject(context, async ({ project }) => {
      const { output, signal, json } = context;
      const { base, branches, check = false, format } = options;
      const report = await specOverlaps(project, { base, branches, signal });
      if (json) output.json(report);
      else if (format === "github") annotate(output, report);
      else printTable(output, report.overlaps, columnsFor(report));
      if (!json) printNotes(output, report);
      return check && report.overlaps.length > 0 ? 1 : 0;
    }),
});

const columnsFor = ({ base }: OverlapReport): readonly Column<Overlap>[] => [
  { header: "WHAT", value: nameOf, style: () => "cyan", wraps: true },
  { header: "CHANGED BY", value: (overlap) => claimsOf(overlap, base).join(", "), wraps: true },
  placeColumn(({ parts: [first] }) => first && { path: first.path, line: first.line }),
];

/** `shipping / "Free shipping"`. */
const nameOf = ({ feature, title }: Overlap): string => `${feature} / "${title}"`;

/** `cheaper MODIFIED`, `origin/prices`, `the work tree`. */
function claimsOf({ kind, parts }: Overlap, base: string | undefined): readonly string[] {
  const claims = parts.map(({ change, delta, branch }) => {
    if (change === undefined) return branch ?? "the work tree";
    return `${change} ${delta?.toUpperCase() ?? ""}${branch === undefined ? "" : ` (${branch})`}`;
  });
  return kind === "base" && base !== undefined ? [...claims, `${base} since then`] : claims;
}

/** Annotates the parts that the work tree has. */
function annotate(output: Output, { overlaps, base }: OverlapReport): void {
  for (const overlap of overlaps) {
    const isHere = ({ branch }: OverlapPart): boolean => branch === undefined;
    const message = `${nameOf(overlap)} is changed by ${claimsOf(overlap, base).join(", ")}.`;
    for (const { path, line } of overlap.parts.filter(isHere))
      output.line(toGithubCommand("warning", { path, line, title: "Two changes overlap", message }));
  }
}

function printNotes(output: Output, { overlaps, base, branches, notes }: OverlapReport): void {
  for (const note of notes) output.note(`${output.noteStyle("yellow", "note:")} ${safeLine(note)}`);
  const others = [
    ...(base === undefined ? [] : [base]),
    ...(branches.length > 0 ? [count(branches.length, "further branch", "further branches")] : []),
  ];
  const compared = `the work tree${others.map((other) => ` and ${other}`).join("")}`;
  if (overlaps.length > 0) output.note(`${count(overlaps.length, "overlap")} in ${safeLine(compared)}.`);
  else output.note(`${output.noteStyle("green", "✓")} Nothing overlaps in ${safeLine(compared)}.`);
}
