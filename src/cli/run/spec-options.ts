import { defined } from "../../base/record.ts";
import type { ExitCode } from "../command.ts";
import { usageError } from "../report-error.ts";
import { safeLine } from "../text/safe-text.ts";
import { openTerminalService, type TerminalServiceOptions } from "./terminal-service.ts";

/** The options of `--spec`, and those that mean nothing with it. */
const ofSpecs = ["task", "attempts", "parallel", "maxCost", "testsBy", "dryRun"] as const;
const notOfSpecs = ["id", "session", "continue", "role", "file", "payload"] as const;

export function checkSpecOptions(
  options: Readonly<
    Partial<Record<(typeof ofSpecs)[number] | (typeof notOfSpecs)[number] | "spec", unknown>>
  >,
): void {
  const names = options.spec === undefined ? ofSpecs : notOfSpecs;
  const astray = names.find((name) => options[name] !== undefined);
  if (astray === undefined) return;
  const name = flagOf(astray);
  throw usageError(
    options.spec === undefined
      ? `${name} works with --spec only.`
      : `${name} does not work with --spec: each task has a session of its own.`,
    "'kit run --help' shows each.",
  );
}

/** Works through the tasks of a spec. */
export async function runSpec({
  project,
  loaded,
  context,
  options,
  feature,
}: Omit<TerminalServiceOptions, "engine" | "options"> & {
  readonly options: TerminalServiceOptions["options"] & SpecOptions;
  readonly feature: string;
}): Promise<ExitCode> {
  const { printPlan, runSpecTasks } = await import("./run-spec.ts");
  const { task: tasks, agent, testsBy: tests_by, attempts, parallel, maxCost: max_cost, stream } = options;
  const body = { feature, ...defined({ tasks, agent, tests_by, attempts, parallel, max_cost }) };
  if (options.dryRun === true) return printPlan(project, body, context);
  const own = ["model", "backend", "allowWrite", "allowShell", "allowCommand"] as const;
  return await runSpecTasks({
    context,
    body,
    stream: stream === true,
    ownOptions: own.filter((name) => options[name] !== undefined).map(flagOf),
    async open() {
      const service = await openTerminalService({ project, loaded, engine: undefined, options, context });
      for (const problem of service.app.problems())
        context.output.note(safeLine(`${problem.path}: ${problem.message}`));
      const { createServer } = await import("../../server/create-server.ts");
      const server = createServer({ project, service, console: false });
      return { service, fetch: (input, init) => server.fetch(new Request(input, init)) };
    },
  });
}

interface SpecOptions {
  readonly task?: readonly string[] | undefined;
  readonly agent?: string | undefined;
  readonly testsBy?: string | undefined;
  readonly attempts?: number | undefined;
  readonly parallel?: number | undefined;
  readonly maxCost?: number | undefined;
  readonly dryRun?: boolean | undefined;
  readonly stream?: boolean | undefined;
}

export function parseDollars(written: string): number {
  const dollars = Number(written);
  if (written.trim() !== "" && Number.isFinite(dollars) && dollars >= 0) return dollars;
  throw usageError(`--max-cost takes US dollars, not ${JSON.stringify(written)}.`, "Such as 2.50.");
}

/** `--max-cost` for `maxCost`. */
function flagOf(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}
