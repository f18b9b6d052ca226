import type { RunCompleted } from "../../protocol/run.ts";
import type { CommandContext, ExitCode } from "../command.ts";
import { reportError, toErrorEnvelope } from "../report-error.ts";
import { safeLines, toSafeJsonLine } from "../text/safe-text.ts";
import type { EventPrinter } from "./print-events.ts";

/** Prints what a route would answer: whole with `--json`, as the last line of the events with `--stream`. */
export function printBody(
  body: Readonly<Record<string, unknown>>,
  context: CommandContext,
  stream: boolean,
): void {
  if (!context.json) return;
  if (stream) context.output.write(`${toSafeJsonLine({ type: "result", ...body })}\n`);
  else context.output.json(body);
}

/** Prints what a run came to: a text as it is, anything else as JSON. */
export function printRunResult(
  { status, run_id, result }: RunCompleted,
  how: { readonly context: CommandContext; readonly stream: boolean; readonly printer: EventPrinter },
): void {
  const { context, stream, printer } = how;
  const { output, json } = context;
  if (json) printBody({ status, run_id, result: result ?? null }, context, stream);
  else if (typeof result === "string") {
    // What was streamed is often what the workflow returns; nobody needs to read it twice.
    if (printer.printedText.trim() !== result.trim()) output.line(safeLines(result));
  } else if (result !== undefined && result !== null) output.json(result);
}

/** Says what went wrong; with `--stream --json` as the last line of the events, of type `error`. */
export function printFailure(error: unknown, context: CommandContext, stream: boolean): ExitCode {
  const { output, json } = context;
  const asLine = json && stream;
  const exitCode = reportError(error, output, {
    json: json && !asLine,
    debug: process.env.KIT_DEBUG === "1",
  });
  if (asLine) output.write(`${toSafeJsonLine({ type: "error", ...toErrorEnvelope(error) })}\n`);
  return exitCode;
}
