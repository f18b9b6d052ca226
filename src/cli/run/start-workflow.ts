import type { App } from "../../app/agents/app.ts";
import type { CommandContext, ExitCode } from "../command.ts";
import { safeLines } from "../text/safe-text.ts";
import type { EventPrinter } from "./print-events.ts";
import { printBody } from "./print-outcome.ts";

/** Runs a workflow and prints its result: a text as it is, anything else as JSON. */
export async function startWorkflow(request: {
  readonly app: App;
  readonly context: CommandContext;
  readonly name: string;
  readonly options: {
    readonly payload?: Readonly<Record<string, unknown>> | undefined;
    readonly stream?: boolean | undefined;
  };
  readonly printer: EventPrinter;
}): Promise<ExitCode> {
  const { app, context, printer, options } = request;
  const { run_id, result } = await app.run(request.name, {
    payload: options.payload ?? {},
    signal: context.signal,
    onEvent: printer.onEvent,
  });
  printer.end();
  const { output, json } = context;
  output.progress("");
  const body = { status: "completed", run_id, result: result ?? null };
  if (json) printBody(body, context, options.stream === true);
  else if (typeof result === "string") {
    // What was streamed is often what the workflow returns; nobody needs to read it twice.
    if (printer.printedText.trim() !== result.trim()) output.line(safeLines(result));
  } else if (result !== undefined) output.json(result);
  return 0;
}
