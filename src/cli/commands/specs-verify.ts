import { toIsolation } from "../../app/runtime/open-sandbox.ts";
import { verifySpecs } from "../../app/verify/verify-specs.ts";
import {
  type JudgedCriterion,
  type Verdict,
  type VerdictEnd,
  verdictRunTexts,
} from "../../protocol/verdict.ts";
import { asText } from "../choices.ts";
import { type Command, defineCommand, flag, listOption, option } from "../command.ts";
import { isolationFor } from "../isolation-for.ts";
import { remarkFormat, toGithubCommand } from "../print/diagnostics.ts";
import type { Output, Style } from "../print/output.ts";
import { count, formatLocation } from "../print/table.ts";
import { safeLine, safeLines } from "../text/safe-text.ts";
import { withProject } from "../with-project.ts";

export const specsVerify: Command = defineCommand({
  arguments: [{ usage: "[feature]", description: "Only criteria of this feature, such as checkout" }],
  options: {
    task: option(
      "--task <number>",
      "The criteria of this task of the feature, or of the task with this id",
      asText,
    ),
    criterion: listOption("--criterion <keys>", "Exactly these criteria, such as checkout#1.2", asText),
    since: option(
      "--since <revision>",
      "The change is what differs from the merge base with it; default: the main branch",
      asText,
    ),
    lenient: flag("--lenient", "Exit with 0 also where a person has to decide"),
    format: remarkFormat,
  },
  examples: [
    "kit specs verify",
    "kit specs verify checkout --task 3 --since HEAD",
    "kit specs verify --since origin/main --format github",
    "kit specs verify --json",
  ],
  details:
    "Judges the present work tree, committed or not, by running its tests: in checkouts that only kit sees, isolated where the system can, without secrets and network. Without a feature, it judges the criteria whose test or text changed, and those of the tasks that were ticked. A verdict is closed (exit 0), refused or broken (exit 1), or a question for a person (exit 3). [specs.verify] in kit.toml sets the runner and the limits.",
  run: ({ args: [feature], options }, context) =>
    withProject(context, async ({ project, loaded: { config } }) => {
      const { output, signal, json } = context;
      const { task, criterion, since, format, lenient = false } = options;
      const verdict = await verifySpecs(project, {
        ...{ feature, task, criteria: criterion, since, signal },
        settings: config.specs?.verify,
        checks: config.guidelines?.check,
        isolation: await isolationFor(project.root, toIsolation(config.sandbox), "tests"),
        onStep: (step) => output.progress(`Running tests: ${verdictRunTexts[step]} …`),
      });
      output.progress("");
      if (json) output.json(verdict);
      else if (format === "github") annotate(output, verdict);
      else print(output, verdict);
      return verdict.end === "ask" && lenient ? 0 : exitCodes[verdict.end];
    }),
});

const exitCodes: Readonly<Record<VerdictEnd, number>> = { closed: 0, refused: 1, broken: 1, ask: 3 };

const styles: Readonly<Record<VerdictEnd, Style>> = {
  closed: "green",
  refused: "red",
  ask: "yellow",
  broken: "red",
};

function annotate(output: Output, { end, reasons, criteria }: Verdict): void {
  for (const { check, message, path, line, end: reasonEnd } of reasons) {
    const level = reasonEnd === "ask" ? "warning" : "error";
    output.line(toGithubCommand(level, { path, line, title: `kit specs verify: ${check}`, message }));
  }
  output.note(`${end}: ${listed(criteria)}`);
}

function print(output: Output, verdict: Verdict): void {
  const { end, criteria, reasons, notes, runs, runner, isolated, changed, duration_ms } = verdict;
  for (const { check, message, path, line, end: reasonEnd } of reasons) {
    const place = path === undefined ? "" : `  ${output.style("dim", safeLine(formatLocation(path, line)))}`;
    output.line(`${output.style(styles[reasonEnd], check)}${place}`);
    output.line(`  ${safeLines(message).split("\n").join("\n  ")}`);
  }
  for (const note of notes) output.note(`${output.noteStyle("yellow", "note:")} ${safeLine(note)}`);
  if (!isolated)
    output.note(
      `${output.noteStyle("yellow", "note:")} The tests ran without isolation: bubblewrap is missing.`,
    );
  const ran = runs.reduce((sum, run) => sum + run.runs, 0);
  const work = runner === "" ? "no test had to run" : `${safeLine(runner)} ran ${count(ran, "time")}`;
  output.note(`${count(changed.length, "file")} changed; ${work} in ${(duration_ms / 1_000).toFixed(1)} s.`);
  output.line(`${output.style(styles[end], end)}: ${listed(criteria)}${meanings[end]}`);
}

const meanings: Readonly<Record<VerdictEnd, string>> = {
  closed: "",
  refused: "",
  ask: ". A person has to decide.",
  broken: ". The tests could not be run.",
};

function listed(criteria: readonly JudgedCriterion[]): string {
  return criteria.length === 0 ? "no criterion" : safeLine(criteria.map(({ id }) => id).join(", "));
}
