import { type CheckedRule, checkRules, type RuleReport } from "../../app/rule-checks/check-rules.ts";
import { toIsolation } from "../../app/runtime/open-sandbox.ts";
import { untrustedCode } from "../../app/trust/trust.ts";
import type { Project } from "../../project/project.ts";
import { readChangedFiles, toChangedPaths } from "../../project/scan/git/git-state.ts";
import { asText } from "../choices.ts";
import { type Command, defineCommand, flag, option } from "../command.ts";
import { toProjectPath } from "../find-root.ts";
import { isolationFor } from "../isolation-for.ts";
import { remarkFormat, toGithubCommand } from "../print/diagnostics.ts";
import type { Output, Style } from "../print/output.ts";
import { count, formatLocation } from "../print/table.ts";
import { displayWidth, pad, safeLine, wrap } from "../text/safe-text.ts";
import { withProject } from "../with-project.ts";

export const guidelinesCheck: Command = defineCommand({
  arguments: [
    {
      usage: "[files...]",
      description: "Only these files and folders; default: all that the checks are about",
    },
  ],
  options: {
    since: option(
      "--since <revision>",
      "Only files that changed since the merge base with this branch, tag or commit",
      asText,
    ),
    format: remarkFormat,
    quiet: flag("--quiet", "Print only what is broken or failed, such as for a hook of an agent"),
  },
  examples: [
    "kit guidelines check",
    "kit guidelines check --since main",
    "kit guidelines check src/app.ts",
    "kit guidelines check --since HEAD --quiet",
    "kit guidelines check --since origin/main --format github",
    "kit guidelines check --json",
  ],
  details:
    "Runs the command that [[guidelines.check]] in kit.toml gives a rule, in the project, which isolated commands can only read. Lists which rules are kept and which are broken, with the lines, and the rules that no command checks. Exits with 1 if a rule is broken or a check could not run. 'kit specs verify' runs the same checks in checkouts of its own.",
  run: ({ args, options: { since, format, quiet } }, context) =>
    withProject(
      context,
      async ({ project, loaded: { config, skippedFile } }) => {
        // It may give rules checks: without them, no rule would seem to be broken.
        if (skippedFile !== undefined) throw untrustedCode(skippedFile);
        const { output, signal, json } = context;
        const { root } = project;
        const given = args.flatMap((arg) => filesAt(project, toProjectPath(arg, context)));
        const present = new Set(project.files());
        for (const path of given.filter((each) => !present.has(each)))
          output.note(
            `${output.noteStyle("yellow", "note:")} ${safeLine(path)} is not a file that kit reads: it is gone or ignored.`,
          );
        const changed =
          since === undefined ? [] : toChangedPaths(await readChangedFiles({ root, since, signal }));
        const checks = config.guidelines?.check ?? [];
        const report = await checkRules(project, {
          checks,
          files: args.length === 0 && since === undefined ? undefined : [...new Set([...given, ...changed])],
          isolation:
            checks.length === 0 ? {} : await isolationFor(root, toIsolation(config.sandbox), "checks"),
          signal,
          onCheck: ({ rule }) => output.progress(`Checking ${safeLine(rule)} …`),
        });
        output.progress("");
        if (json) output.json(report);
        else if (format === "github") annotate(output, report);
        else print(output, report, quiet === true);
        return report.checks.some(({ end }) => end === "broken" || end === "failed") ? 1 : 0;
      },
      { namesUnrunCode: true },
    ),
});

/** The files below a folder, or a file, which can be gone. */
function filesAt(project: Pick<Project, "files">, path: string): readonly string[] {
  const below = project.files().filter((file) => path === "" || file.startsWith(`${path}/`));
  return below.length > 0 ? below : [path];
}

const styles: Readonly<Record<CheckedRule["end"], Style>> = {
  broken: "red",
  failed: "red",
  kept: "green",
  skipped: "dim",
};

function annotate(output: Output, report: RuleReport): void {
  for (const { end, name, path, line, findings, output: message } of report.checks) {
    if (end === "kept" || end === "skipped") continue;
    const title = `kit guidelines check: ${name} ${end}`;
    const remarks = findings.length > 0 ? findings : [{ path, line, message }];
    for (const place of remarks) output.line(toGithubCommand("error", { ...place, title }));
  }
  output.note(summary(report));
}

/** About as many as fit on a screen. */
const mostUnchecked = 20;

function print(output: Output, report: RuleReport, isQuiet: boolean): void {
  const { checks, isolated } = report;
  const unchecked = isQuiet ? [] : report.unchecked;
  for (const check of checks) {
    const { end, name, files, findings } = check;
    if (end === "skipped" || (isQuiet && end === "kept")) continue;
    const about = end === "kept" ? output.style("dim", `  ${count(files, "file")}`) : "";
    output.line(`${output.style(styles[end], end.padEnd(6))}  ${safeLine(name)}${about}`);
    const lines =
      findings.length > 0
        ? findings.map(
            ({ path, line, column, message }) => `${formatLocation(path, line, column)}: ${message}`,
          )
        : check.output.split("\n").slice(0, end === "kept" ? 0 : undefined);
    for (const text of lines) {
      const [first = "", ...rest] = wrap(safeLine(text), output.width - 6);
      output.line([`  ${first}`, ...rest.map((more) => `    ${more}`)].join("\n"));
    }
  }
  if (unchecked.length > 0) output.line("Nothing checks these rules:");
  const listed = unchecked.slice(0, mostUnchecked);
  const width = Math.min(40, Math.max(0, ...listed.map(({ name }) => displayWidth(safeLine(name)))));
  for (const { name, title } of listed)
    output.line(`  ${pad(safeLine(name), width)}  ${output.style("dim", safeLine(title))}`);
  if (unchecked.length > listed.length)
    output.line(`  … and ${unchecked.length - listed.length} more, which --json lists.`);
  if (checks.length === 0)
    output.note("No rule has a check: [[guidelines.check]] in kit.toml gives it one (docs/guidelines.md).");
  else if (!isolated)
    output.note(
      `${output.noteStyle("yellow", "note:")} The checks ran without isolation: bubblewrap is missing.`,
    );
  if (!isQuiet) output.note(summary(report));
}

function summary({ checks, unchecked }: RuleReport): string {
  const of = (end: CheckedRule["end"]): number => checks.filter((check) => check.end === end).length;
  const parts = [`${count(of("broken"), "rule")} broken`, `${of("kept")} kept`];
  if (of("failed") > 0) parts.push(`${count(of("failed"), "check")} failed`);
  if (of("skipped") > 0) parts.push(`${of("skipped")} without a file to check`);
  return `${parts.join(", ")}; ${count(unchecked.length, "rule")} without a check.`;
}
