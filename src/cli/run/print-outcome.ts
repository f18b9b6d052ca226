import type { CommandContext, ExitCode } from "../command.ts";
import { reportError, toErrorEnvelope } from "../report-error.ts";
import { toSafeJsonLine } from "../text/safe-text.ts";

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
