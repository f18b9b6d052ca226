import { planTasks } from "../../app/spec-run/plan-tasks.ts";
import { KitError } from "../../base/kit-error.ts";
import { defined, isRecord } from "../../base/record.ts";
import { KitClient } from "../../client/kit-client.ts";
import type { Project } from "../../project/project.ts";
import type { KitEvent } from "../../protocol/event.ts";
import {
  type SpecRunBody,
  type SpecRunResult,
  specRunResultSchema,
  specRunWorkflow,
  specTaskOf,
} from "../../protocol/spec-run.ts";
import { clientLocator } from "../client/open-client.ts";
import type { CommandContext, ExitCode } from "../command.ts";
import { createEventPrinter } from "../print/print-events.ts";
import { count, printTable } from "../print/table.ts";
import { safeLine } from "../text/safe-text.ts";
import { createApprovalAnswers } from "./answer-approvals.ts";
import { flagOf } from "./spec-options.ts";
import { SpecTasks } from "./spec-tasks.ts";
import { openTerminalService, type TerminalServiceOptions } from "./terminal-service.ts";

interface SpecRunOptions extends Omit<TerminalServiceOptions, "engine" | "options"> {
  readonly feature: string;
  readonly options: TerminalServiceOptions["options"] & {
    readonly task?: readonly string[] | undefined;
    readonly agent?: string | undefined;
    readonly testsBy?: string | undefined;
    readonly attempts?: number | undefined;
    readonly parallel?: number | undefined;
    readonly maxCost?: number | undefined;
    readonly dryRun?: boolean | undefined;
    readonly stream?: boolean | undefined;
  };
}

/** Options that a server would not get. */
const ofThisProcess = ["model", "backend", "allowWrite", "allowShell", "allowCommand"] as const;

/** Prints what a run would do, as the files are now. */
function printPlan(project: Project, body: SpecRunBody, { output, json }: CommandContext): undefined {
  const tasks = planTasks(project.specs.all(), body);
  if (json) {
    output.json({ feature: body.feature, tasks });
    return;
  }
  printTable(output, tasks, [
    { header: "TASK", value: ({ number }) => number },
    { header: "TITLE", value: ({ title }) => title, wraps: true },
    { header: "CRITERIA", value: ({ criteria }) => criteria.map(({ id }) => id).join(", "), wraps: true },
    { header: "WHERE", value: ({ path, line }) => `${path}:${line}` },
  ]);
  const withoutCriteria = tasks.filter(({ criteria }) => criteria.length === 0).length;
  output.note(
    `${count(tasks.length, "task")}, nothing was run.${withoutCriteria === 0 ? "" : ` ${withoutCriteria} without criteria: a person decides about each.`}`,
  );
}

/**
 * Works through the tasks of a spec and shows each: in the server that holds the folder, else in this process. A run of the feature that
 * was interrupted goes on instead of a new one.
 */
export async function runSpec({
  project,
  loaded,
  context,
  options,
  feature,
}: SpecRunOptions): Promise<ExitCode> {
  const { task: tasks, agent, testsBy: tests_by, attempts, parallel, maxCost: max_cost } = options;
  const body = { feature, ...defined({ tasks, agent, tests_by, attempts, parallel, max_cost }) };
  if (options.dryRun === true) return printPlan(project, body, context);
  const request = { context, body, stream: options.stream === true };
  const server = await (await clientLocator(context, undefined))();
  if (server !== undefined) {
    const astray = ofThisProcess.filter((name) => options[name] !== undefined).map(flagOf);
    if (astray.length > 0) {
      throw new KitError({
        code: "conflict",
        message: `A server holds this folder and does the work, so ${astray.join(", ")} would not reach it.`,
        hint: "Leave them out, or stop the server: 'kit stop'.",
      });
    }
    context.output.note("The server of this project does the work.");
    return await follow(server, request, { mayAsk: true });
  }
  const service = await openTerminalService({ project, loaded, engine: undefined, options, context });
  try {
    for (const problem of service.app.problems())
      context.output.note(safeLine(`${problem.path}: ${problem.message}`));
    const { createServer } = await import("../../server/create-server.ts");
    const local = createServer({ project, service, console: false });
    const client = new KitClient({
      baseUrl: "http://localhost",
      fetch: (input, init) => local.fetch(new Request(input, init)),
      signal: context.signal,
      retry: { attempts: 1 },
    });
    // The service in this process asks for its own calls.
    return await follow(client, request, { mayAsk: false });
  } finally {
    // The next start goes on with the work.
    await service.close({ timeoutMs: 0 });
  }
}

interface Followed {
  readonly context: CommandContext;
  readonly body: SpecRunBody;
  readonly stream: boolean;
}

async function follow(
  client: KitClient,
  { context, body, stream }: Followed,
  { mayAsk }: { readonly mayAsk: boolean },
): Promise<ExitCode> {
  const { output, json, signal } = context;
  const { runId, isOld: isContinued } = await findOrStart(client, body);
  if (isContinued) output.note(`Goes on with the run ${runId}, as it was begun.`);
  const printer = createEventPrinter(context, { stream, answers: false });
  const approvals = createApprovalAnswers({ client, context, printer });
  const tasks = new SpecTasks({ client, context, runId, isQuiet: json });
  try {
    for await (const event of tasks.until(client.runs.stream(runId))) {
      const task = specTaskOf(event);
      if (task === undefined || (json && stream)) printer.onEvent(event);
      else {
        printer.end();
        tasks.onTask(task);
      }
      if (mayAsk && !isOld(event, tasks)) approvals.onEvent(event);
    }
    if (tasks.isLeft) return tasks.printLeft();
    const record = await client.runs.get(runId);
    if (record.status !== "completed") throw failureOf(runId, record.error);
    return printEnd(specRunResultSchema.parse(record.result), context);
  } catch (error) {
    if (!signal.aborted) throw error;
    output.note(
      `Stopped. The next 'kit run --spec ${safeLine(body.feature)}' goes on with it; 'kit runs cancel ${runId}' ends it.`,
    );
    throw signal.reason;
  } finally {
    approvals.close();
    printer.end();
    output.progress("");
  }
}

/** Requests of a run that goes on were answered before. */
function isOld(event: KitEvent, tasks: SpecTasks): boolean {
  return event.type === "approval_request" && Date.parse(event.timestamp) < tasks.since;
}

/** Returns the open run of the feature, or starts one unless the signal has fired. */
export async function findOrStart(
  client: KitClient,
  body: SpecRunBody,
  signal?: AbortSignal,
): Promise<{ readonly runId: string; readonly isOld: boolean }> {
  signal?.throwIfAborted();
  const { runs } = await client.runs.list({ workflow: specRunWorkflow, limit: 1_000 });
  const open = runs.find(
    ({ ended_at, payload }) =>
      ended_at === undefined && isRecord(payload) && payload.feature === body.feature,
  );
  if (open !== undefined) return { runId: open.run_id, isOld: true };
  signal?.throwIfAborted();
  return { runId: (await client.workflows.start(specRunWorkflow, body)).run_id, isOld: false };
}

export function failureOf(
  runId: string,
  error: { readonly type: string; readonly message: string } | undefined,
): KitError {
  return new KitError({
    code: "internal_error",
    message: error?.message ?? "The run was cancelled.",
    hint: `What was closed stays closed. 'kit runs show ${runId}' has the details; the same command begins with the tasks that are left.`,
    meta: { run_id: runId },
  });
}

function printEnd(result: SpecRunResult, { output, json }: CommandContext): ExitCode {
  const { branch, base, head, tasks, cost } = result;
  const open = tasks.filter(({ state }) => state !== "closed");
  if (json) output.json(result);
  else {
    const money = cost === null || cost === 0 ? "" : ` Cost: $${cost.toFixed(2)}.`;
    const what =
      tasks.length === 0
        ? "No task is open."
        : `${tasks.length - open.length} of ${count(tasks.length, "task")} closed.`;
    output.note(`${what}${money}`);
    if (head !== base) output.note(`The commits are on ${branch}: git merge ${branch}`);
  }
  return open.length === 0 ? 0 : 1;
}
