import { resolve } from "node:path";
import type { BuildResult } from "../../build/build.ts";
import type { Deployment } from "../../build/targets/target.ts";
import { targets } from "../../build/targets/targets.ts";
import { asText } from "../choices.ts";
import { type Command, type CommandContext, defineCommand, type ExitCode, flag, option } from "../command.ts";
import { usageError } from "../report-error.ts";
import { safeLine, safeLines } from "../text/safe-text.ts";
import { withProject } from "../with-project.ts";
import { printBuild } from "./build.ts";

const names = targets.filter(({ deployment }) => deployment !== undefined).map(({ name }) => name);

export const deploy: Command = defineCommand({
  options: {
    target: option("-t, --target <name>", `Where to: ${names.join(", ")}`, asText),
    out: option("-o, --out <dir>", "The folder of the output (default build/<target>)", asText),
    dryRun: flag("--dry-run", "Build, and print the commands that would run; nothing is sent"),
    force: flag("--force", "Replace files that were changed by hand"),
  },
  examples: [
    "kit deploy --target fly --dry-run",
    "KIT_API_KEYS=$(openssl rand -hex 24) kit deploy --target docker",
  ],
  details:
    "Builds, then calls the platform's own command-line tool (docker, fly, railway, vercel, netlify, wrangler, gh, glab), which must be installed and signed in, and prints its output. At the end prints the address and a check of its health, or exits with the tool's exit code. Passes values of secrets to the tool by the environment or by its input, never as arguments.",
  run: ({ options: { target: name, out, dryRun = false, force = false } }, context) =>
    withProject(
      context,
      async ({ project, loaded }): Promise<ExitCode> => {
        if (name === undefined)
          throw usageError("--target is missing.", `The targets are ${names.join(", ")}.`);
        const [{ build }, { findTarget }] = await Promise.all([
          import("../../build/build.ts"),
          import("../../build/targets/targets.ts"),
        ]);
        const target = findTarget(name);
        if (target.deployment === undefined) {
          throw usageError(
            `kit deploy does not support ${target.name}.`,
            `Run 'kit build --target ${target.name}' and follow the steps that it prints. kit deploys to ${names.join(", ")}.`,
          );
        }
        const { cwd, output } = context;
        const started = performance.now();
        output.progress("building …");
        const folder = out === undefined ? undefined : resolve(cwd, out);
        const result = await build({ project, loaded, target, cwd, out: folder, check: false, force });
        const printsProblems = !context.json || result.problems.length > 0;
        if (printsProblems)
          printBuild(output, result, {
            check: false,
            force,
            tookMs: performance.now() - started,
            next: false,
          });
        if (result.problems.length > 0) return 1;
        const deployment = target.deployment(result.app, {
          folder: result.folder,
          environment: loaded.environment,
        });
        return await carryOut(context, { result, deployment, dryRun, environment: loaded.environment });
      },
      { runsCode: true, sendsKeys: true },
    ),
});

interface Plan {
  readonly result: BuildResult;
  readonly deployment: Deployment;
  readonly dryRun: boolean;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

async function carryOut(
  { output, json, signal }: CommandContext,
  { result, deployment, dryRun, environment }: Plan,
): Promise<ExitCode> {
  const { deploy: run, toLine } = await import("../../build/deploy.ts");
  const steps = deployment.steps.map((step) => toLine(deployment, step));
  const { target, folder } = result;
  if (dryRun) {
    if (json) output.json({ target, folder, dry_run: true, steps, remarks: deployment.remarks });
    else {
      output.line("\nWithout --dry-run, this would be run:");
      for (const step of steps) output.line(`  ${safeLine(step)}`);
      for (const line of deployment.remarks) output.line(`  ${output.style("dim", safeLine(`# ${line}`))}`);
      output.line("Nothing was sent.");
    }
    return 0;
  }
  if (!json) output.line();
  // Prints the tool's output as it comes; with --json, stdout has only the answer.
  const print = (text: string): void =>
    json ? output.note(safeLines(text.trimEnd())) : output.write(safeLines(text));
  const { exitCode, address, healthy } = await run(deployment, {
    environment,
    signal,
    print,
    note: (text) => output.note(safeLine(text)),
  });
  if (json) {
    output.json({
      target,
      folder,
      dry_run: false,
      steps,
      exit_code: exitCode,
      address,
      healthy,
      remarks: deployment.remarks,
    });
    return exitCode;
  }
  if (exitCode !== 0 && address === undefined) {
    output.note(`${deployment.tools[0]} ended with ${exitCode}. What was built is in place.`);
    return exitCode;
  }
  if (address !== undefined) {
    const state = healthy === true ? "is healthy" : "does not answer /health yet: look at its log";
    output.line(`${safeLine(address)} ${state}.`);
  }
  for (const line of deployment.remarks) output.line(safeLine(line));
  return exitCode;
}
