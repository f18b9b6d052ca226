import { readChangesSince } from "../../project/features/changes-since.ts";
import { readNamedSpecs } from "../../project/features/named-specs.ts";
import type { Project } from "../../project/project.ts";
import { wholeImpact } from "../../project/query/impact.ts";
import { createSpecNames, type SpecNames } from "../../project/query/spec-names.ts";
import type { AffectedSpec, ChangedSpec, Impact, ImpactRequest } from "../../protocol/spec-query.ts";
import { asText, wholeNumber } from "../choices.ts";
import { type Command, type CommandContext, defineCommand, flag, option } from "../command.ts";
import { lookUpSpec, throwUnknownSpec } from "../find-record.ts";
import { toProjectPath } from "../find-root.ts";
import { remarkFormat, toGithubCommand } from "../print/diagnostics.ts";
import type { Output } from "../print/output.ts";
import { count, placeColumn, printTable, specPlace } from "../print/table.ts";
import { safeLine } from "../text/safe-text.ts";
import { withProject } from "../with-project.ts";

export const specsImpact: Command = defineCommand({
  arguments: [{ usage: "[changed...]", description: "Changed files, or ids of changed specs" }],
  options: {
    since: option(
      "--since <revision>",
      "Add the files that changed since this branch, tag or commit",
      asText,
    ),
    expandFeatures: flag(
      "--expand-features",
      "Also list specs that only share a feature with an affected spec",
    ),
    obsolete: flag("--obsolete", "Also list obsolete specs"),
    limit: option("-n, --limit <number>", "The most to list, 1 to 1,000 (default 50)", wholeNumber(1, 1000)),
    cursor: option("--cursor <cursor>", "Start at the next_cursor of an earlier --json", asText),
    all: flag("-a, --all", "List all of them"),
    format: remarkFormat,
    depth: option("--depth <number>", "How many steps to follow, 1 to 5 (default 2)", wholeNumber(1, 5)),
  },
  examples: [
    "kit specs impact",
    "kit specs impact --since main",
    "kit specs impact --since origin/main --format github",
    "kit specs impact src/checkout/cart.ts",
    "kit specs impact checkout#1 --depth 3",
  ],
  details: "Without anything named, what is not committed yet counts as changed.",
  run: ({ args, options }, context) =>
    withProject(context, async ({ project }) => {
      const since = options.since ?? (args.length === 0 ? "HEAD" : undefined);
      const changes = args.map((text) => toChanged(text, project, context));
      const { signal } = context;
      const inGit = since === undefined ? undefined : await readChangesSince(project, { since, signal });
      const files = [...new Set([...changes.flatMap(({ file }) => file ?? []), ...(inGit?.files ?? [])])];
      const ids = [...new Set(changes.flatMap(({ id }) => id ?? []))];
      const { depth, limit, cursor, all = false, expandFeatures, obsolete } = options;
      const request: ImpactRequest = {
        files,
        ids,
        depth,
        ...(expandFeatures === true && { expand_features: true }),
        ...(obsolete === true && { include_obsolete: true }),
        ...(limit !== undefined && { limit }),
        ...(cursor !== undefined && { cursor }),
      };
      const specsOfTests = await readNamedSpecs(project, files);
      const ask = (page: ImpactRequest): Impact => project.specs.impact(page, inGit?.compared, specsOfTests);
      const impact = all ? wholeImpact(ask, request) : ask(request);
      if (context.json) {
        context.output.json(impact);
        return 0;
      }
      if (options.format === "github") {
        annotate(context.output, project, impact);
        return 0;
      }
      noteMissing(
        context.output,
        project,
        changes.flatMap(({ file }) => file ?? []),
      );
      printImpact(context.output, { impact, project, changed: files.length + ids.length });
    }),
});

/** Annotates each affected spec at its line, and says which tests to run. */
function annotate(output: Output, project: Project, { affected, tests, total_count }: Impact): void {
  for (const { id, score } of affected) {
    const spec = project.specs.get(id);
    if (spec === undefined) continue;
    const { path, title, metadata } = spec;
    const line = metadata.source?.start_line;
    const message = `This change affects the spec: ${title} (${Math.round(score * 100)} %).`;
    output.line(toGithubCommand("notice", { path, line, title: id, message }));
  }
  for (const path of tests)
    output.line(
      toGithubCommand("notice", { path, title: "test to run", message: "It covers an affected spec." }),
    );
  output.note(`${count(total_count, "spec")} affected, ${count(tests.length, "test file")} to run.`);
}

/** An argument is a spec's id if a spec has it, otherwise a path, also of a deleted file. */
function toChanged(
  text: string,
  project: Project,
  context: CommandContext,
): { readonly id?: string; readonly file?: string } {
  const file = toProjectPath(text, context);
  if (project.specs.get(text) === undefined && project.files().includes(file)) return { file };
  const id = lookUpSpec(project, text)?.id;
  if (id !== undefined) return { id };
  return /[./]/.test(text) ? { file } : throwUnknownSpec(project, text);
}

/** Notes files that do not exist: specs may still name a deleted file, but the path may also be a typo. */
function noteMissing(output: Output, project: Project, files: readonly string[]): void {
  const all = project.files();
  const missing = files.filter(
    (file) => !all.some((indexed) => indexed === file || indexed.startsWith(`${file}/`)),
  );
  if (missing.length === 0) return;
  const names = safeLine(missing.join(", "));
  output.note(`${output.noteStyle("yellow", "note:")} ${names}: no such file in the project now.`);
}

interface ImpactReport {
  readonly impact: Impact;
  readonly project: Project;
  readonly changed: number;
}

function printImpact(output: Output, { impact, project, changed }: ImpactReport): void {
  if (changed === 0) {
    output.note("Nothing changed.");
    return;
  }
  const { total_count: total, same_feature: folded, obsolete_count: obsolete } = impact;
  if (total === 0) output.note(`${count(changed, "change")}, no spec affected.`);
  const changes = new Map(impact.changed_specs?.map((spec) => [spec.id, spec]));
  const nameOf = namesForPeople(project);
  const rows = impact.affected.map((affected) => ({ affected, spec: project.specs.get(affected.id) }));
  printTable(output, rows, [
    {
      header: "SCORE",
      value: ({ affected }) => affected.score.toFixed(2),
      forPeople: ({ affected }) => (changes.has(affected.id) ? "changed" : affected.score.toFixed(2)),
      align: "right",
    },
    {
      header: "SPEC",
      value: ({ affected }) => affected.id,
      forPeople: ({ affected }) => nameOf(affected.id),
      style: () => "cyan",
    },
    { header: "TITLE", value: ({ spec }) => spec?.title ?? "", wraps: true },
    { ...placeColumn(({ spec }) => spec && specPlace(spec)), inOrder: true },
    {
      header: "WHY",
      value: ({ affected }) => describeChange(changes.get(affected.id)) ?? reasonOf(affected, (id) => id),
      forPeople: ({ affected }) => describeChange(changes.get(affected.id)) ?? reasonOf(affected, nameOf),
      wraps: true,
    },
  ]);
  if (output.isTerminal) printPaths(output, "Tests to run", impact.tests);
  const dim = (text: string): void => output.note(output.noteStyle("dim", safeLine(text)));
  for (const { feature, specs } of folded.slice(0, mostFeatures))
    dim(`+ ${count(specs, "spec")} of ${feature} by feature only`);
  if (folded.length > mostFeatures) dim(`+ ${count(folded.length - mostFeatures, "more feature")}`);
  if (folded.length > 0) dim("  (--expand-features lists them)");
  const removed = impact.changed_specs?.filter(({ change }) => change === "removed") ?? [];
  if (removed.length > 0) dim(`Removed: ${removed.map(({ id }) => id).join(", ")}`);
  if (obsolete > 0) dim(`${count(obsolete, "obsolete spec")} left out (--obsolete lists them)`);
  if (rows.length < total) dim(`${rows.length} of ${count(total, "spec")} shown; --all shows all.`);
  if (output.isTerminal && total > 0) {
    dim(
      `${count(changed, "change")}: ${count(total, "spec")}, ${count(impact.tests.length, "test file")} and ${count(impact.files.length, "file")} affected.`,
    );
  }
}

/** The most features to list; the others are counted. */
const mostFeatures = 5;

/** The chain of links that led to a spec, the last one first: `implements fw_a-cart-tasks-1, code_ref src/cart.ts`. */
function reasonOf({ path }: AffectedSpec, nameOf: (id: string) => string): string {
  // That a file holds the block which led here says nothing more.
  return path
    .filter(({ kind }, index) => kind !== "defines" || index === path.length - 1)
    .toReversed()
    .map((edge) => `${edge.kind} ${nameOf(edge.from)}`)
    .join(", ");
}

function describeChange(spec: ChangedSpec | undefined): string | undefined {
  if (spec === undefined) return undefined;
  return spec.change === "modified" ? spec.what.join(", ") : spec.change;
}

/** The names of specs by their ids; anything else keeps its name. */
function namesForPeople({ specs }: Project): (id: string) => string {
  let names: SpecNames | undefined;
  return (id) => {
    const spec = specs.get(id);
    if (spec === undefined) return id;
    names ??= createSpecNames(specs);
    return names.nameOf(spec);
  };
}

function printPaths(output: Output, title: string, paths: readonly string[]): void {
  if (paths.length === 0) return;
  output.line();
  output.line(output.style("bold", title));
  for (const path of paths) output.line(`  ${safeLine(path)}`);
}
