import type { App } from "../../app/agents/app.ts";
import type { CommandContext, ExitCode } from "../command.ts";
import type { EventPrinter } from "./print-events.ts";
import { printRunResult } from "./print-outcome.ts";

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
  context.output.progress("");
  printRunResult(
    { status: "completed", run_id, result },
    { context, printer, stream: options.stream === true },
  );
  return 0;
}
