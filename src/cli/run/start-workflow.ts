import type { App } from "../../app/agents/create-app.ts";
import { runWorkflow } from "../../app/agents/run-workflow.ts";
import type { CommandContext, ExitCode } from "../command.ts";
import { safeLines } from "../text/safe-text.ts";
import type { EventPrinter } from "./print-events.ts";

/** Runs a workflow and prints its result: a text as it is, anything else as JSON. */
export async function startWorkflow(request: {
  readonly app: App;
  readonly context: CommandContext;
  readonly name: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly printer: EventPrinter;
}): Promise<ExitCode> {
  const { app, context, printer } = request;
  const { run_id, result } = await runWorkflow(app, {
    name: request.name,
    payload: request.payload,
    env: context.env,
    signal: context.signal,
    onEvent: printer.onEvent,
  });
  printer.end();
  const { output } = context;
  if (context.json) output.json({ status: "completed", run_id, result: result ?? null });
  else if (typeof result === "string") output.line(safeLines(result));
  else if (result !== undefined) output.json(result);
  return 0;
}
