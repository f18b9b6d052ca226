import { resolve } from "node:path";
import type { BuildResult } from "../../build/build.ts";
import { targets } from "../../build/targets/targets.ts";
import { asText } from "../choices.ts";
import { type Command, defineCommand, flag, option } from "../command.ts";
import { printLineDiff } from "../print/line-diff.ts";
import type { Output } from "../print/output.ts";
import { count } from "../print/table.ts";
import { safeLine } from "../text/safe-text.ts";
import { withProject } from "../with-project.ts";

const targetNames = targets.map(({ name, summary }) => `${name} (${summary})`).join(", ");

export const build: Command = defineCommand({
  options: {
    target: option("-t, --target <name>", "The platform to build for (default node)", asText),
    out: option("-o, --out <dir>", "The folder of the output (default build/<target>)", asText),
    check: flag("--check", "Write nothing; exit with 1 if the target cannot run the project"),
    force: flag("--force", "Replace files that were changed by hand"),
  },
  examples: ["kit build", "kit build --target node --out dist", "kit build --check"],
  details: `Puts agents, workflows, webhooks, skills, roles, specs and guidelines into one folder, with kit and the packages that they use. The targets: ${targetNames}. Needs the package rolldown: npm install --save-dev rolldown. An output contains no secrets: set them as variables where it runs.`,
  run: ({ options: { target: name = "node", out, check = false, force = false } }, context) =>
    withProject(
      context,
      async ({ project, loaded }) => {
        const [{ build: buildProject }, { findTarget }] = await Promise.all([
          import("../../build/build.ts"),
          import("../../build/targets/targets.ts"),
        ]);
        const target = findTarget(name);
        const { cwd, output } = context;
        const started = performance.now();
        output.progress("building …");
        const folder = out === undefined ? undefined : resolve(cwd, out);
        const result = await buildProject({ project, loaded, target, cwd, out: folder, check, force });
        if (context.json) output.json(toRecord(result));
        else printBuild(output, result, { check, force, tookMs: performance.now() - started });
        return result.problems.length > 0 ? 1 : 0;
      },
      { runsCode: true },
    ),
});

function toRecord({ app: _, ...result }: BuildResult): object {
  return result;
}

export interface Printing {
  readonly check: boolean;
  readonly force: boolean;
  readonly tookMs: number;
  /** Whether to print the next steps; default true. */
  readonly next?: boolean;
}

export function printBuild(
  output: Output,
  result: BuildResult,
  { check, force, tookMs, next = true }: Printing,
): void {
  for (const text of result.warnings)
    output.note(`${output.noteStyle("yellow", "warning:")} ${safeLine(text)}`);
  for (const { path, message, hint } of result.problems) {
    output.note(`${output.noteStyle("red", "error:")} ${safeLine(`${path} ${message}`)}`);
    output.note(`  ${safeLine(hint)}`);
  }
  if (result.problems.length > 0) {
    output.note(`${count(result.problems.length, "problem")}; nothing was written.`);
    return;
  }
  for (const { path, before, after } of result.differences) {
    const remark = force && !check ? "replaced" : "left as it is; --force replaces it";
    printLineDiff(output, { path, before, after, remark });
    if (!force || check)
      output.note(`${safeLine(path)} has other content than kit would write, and was left as it is.`);
  }
  const size = `${count(result.files, "file")}, ${(result.bytes / 1_000_000).toFixed(1)} MB`;
  if (result.size !== undefined) output.line(result.size);
  if (check) {
    output.line(`${result.target} can run this project: ${size}. Nothing was written.`);
    return;
  }
  for (const path of result.written) output.line(`${output.style("green", "+")} ${safeLine(path)}`);
  const took = `${(tookMs / 1000).toFixed(1)} s`;
  output.line(
    result.holdsApplication
      ? `Built for ${result.target} in ${took}: ${size}.`
      : `The files for ${result.target} are written; tried in ${took}: the application builds, ${size}.`,
  );
  const outside = Object.entries(result.dependencies);
  if (outside.length > 0 && result.holdsApplication)
    output.line(
      `Not part of it, listed in its package.json: ${outside.map((each) => each.join("@")).join(", ")}.`,
    );
  output.line(`Variables to set where it runs: ${result.variables.join(", ")}.`);
  if (!next) return;
  output.line("\nThen:");
  for (const line of result.next)
    output.line(`  ${line.startsWith("#") ? output.style("dim", safeLine(line)) : safeLine(line)}`);
}
