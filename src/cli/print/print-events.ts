import type { SourceProblem } from "../../app/sources/discover-sources.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { RunCompleted } from "../../protocol/run.ts";
import type { CommandContext, ExitCode } from "../command.ts";
import { reportError, toErrorEnvelope } from "../report-error.ts";
import { safeLine, safeLines, toSafeJsonLine, truncate, wrap } from "../text/safe-text.ts";
import { callLine, eventLine } from "./event-line.ts";
import type { Output, Style } from "./output.ts";

export interface EventPrinterOptions {
  /** Show the work as it happens. */
  readonly stream: boolean;
  /** Print what agents answer as it comes. False keeps stdout for the result of a workflow. */
  readonly answers: boolean;
}

export interface EventPrinter {
  readonly onEvent: (event: KitEvent) => void;
  /** The answer of the newest turn, as far as it was printed. */
  readonly printedText: string;
  /** Ends an unfinished line of deltas. */
  end(): void;
  problem(problem: SourceProblem): void;
}

/** The longest remark, in columns, where no terminal has a width. */
const maxRemark = 160;

/** The longest notice, in columns, over all its lines. */
const maxNotice = 2_000;

/**
 * Prints what agents do, as it happens. With `stream`, stdout has the answer as it comes, and stderr a line per tool
 * call, result, task and compaction. Without it, a terminal shows the current work on its last line. With `--json`
 * every event is a line of JSON on stdout. Logs, warnings and retries are always printed in full.
 */
export function createEventPrinter(
  { output, json }: Pick<CommandContext, "output" | "json">,
  { stream, answers }: EventPrinterOptions,
): EventPrinter {
  if (json && stream) return createJsonPrinter(output);
  const lines = createLines(output, answers);
  const live = stream ? createLivePrinter(lines) : createProgressPrinter(output);
  return {
    get printedText() {
      return lines.printed;
    },
    end: lines.end,
    problem: (problem) => lines.notice("yellow", problemLine(problem)),
    onEvent(event) {
      if (event.type === "log" || (event.type === "error" && event.will_retry)) {
        const { text, style = "dim" } = eventLine(event);
        lines.notice(style, text);
      } else live(event);
    },
  };
}

function createJsonPrinter(output: Output): EventPrinter {
  // The events come from several streams: the printer numbers them, so that readers get one sequence.
  let index = 0;
  return {
    printedText: "",
    end: () => undefined,
    problem: (problem) => output.note(output.noteStyle("yellow", problemLine(problem))),
    onEvent(event) {
      index += 1;
      output.write(`${toSafeJsonLine({ ...event, index })}\n`);
    },
  };
}

interface Lines {
  readonly printed: string;
  /** A new answer begins. */
  begin(): void;
  text(delta: string): void;
  /** A line on stderr, cut to the terminal's width. */
  remark(style: Style, text: string): void;
  /** A text on stderr that the reader needs in full, over several lines. */
  notice(style: Style, text: string): void;
  waiting(text: string): void;
  end(): void;
}

/** Separates the answer on stdout from the remarks on stderr where one terminal shows both. */
function createLines(output: Output, answers: boolean): Lines {
  let open = false;
  let lastPrinted: "nothing" | "text" | "remark" = "nothing";
  let printed = "";
  const width = Math.min(output.width, maxRemark);
  const end = (): void => {
    if (open) output.write("\n");
    open = false;
  };
  const note = (style: Style, lines: readonly string[]): void => {
    end();
    if (lastPrinted === "text" && output.isTerminal) output.write("\n");
    for (const line of lines) output.note(output.noteStyle(style, line));
    lastPrinted = "remark";
  };
  return {
    get printed() {
      return printed;
    },
    end,
    begin() {
      printed = "";
    },
    text(delta) {
      if (!answers) return;
      if (lastPrinted === "remark" && output.isTerminal) output.write("\n");
      output.write(safeLines(delta));
      open = !delta.endsWith("\n");
      lastPrinted = "text";
      printed += delta;
    },
    remark(style, text) {
      const indent = /^ */.exec(text)?.[0] ?? "";
      note(style, [truncate(indent + safeLine(text), width)]);
    },
    notice: (style, text) => note(style, wrap(truncate(safeLine(text), maxNotice), output.width)),
    waiting(text) {
      end();
      output.progress(safeLine(text));
    },
  };
}

/** Prints the work as it happens: calls, results, and the answer. */
function createLivePrinter(lines: Lines): (event: KitEvent) => void {
  const depths = new Map<string, number>();
  let callsOfTurn = 0;
  const remark = (event: Parameters<typeof eventLine>[0], indent: string): void => {
    const { text, style = "dim", isResult } = eventLine(event, { namesTool: callsOfTurn > 1 });
    lines.remark(style, `${indent}${isResult === true ? "  " : ""}${text}`);
  };
  const indentOf = (event: KitEvent): string => "  ".repeat(depths.get(event.operation_id) ?? 0);
  return (event) => {
    const indent = indentOf(event);
    switch (event.type) {
      case "operation_start": {
        const parent = event.parent_operation_id;
        if (parent !== undefined) depths.set(event.operation_id, (depths.get(parent) ?? 0) + 1);
        return;
      }
      case "turn_request":
        callsOfTurn = 0;
        if (event.parent_operation_id === undefined) lines.begin();
        lines.waiting(`${indent}${event.model} …`);
        return;
      case "text_delta":
        // The text of a task goes to its parent only.
        if (event.parent_operation_id === undefined) lines.text(event.text);
        return;
      case "tool_start": {
        callsOfTurn += 1;
        // The start of the task says more.
        if (event.tool !== "task") remark(event, indent);
        lines.waiting(`${indent}  …`);
        return;
      }
      case "tool_end":
      case "task_start":
        remark(event, indent);
        return;
      case "compaction_end":
        if (!event.is_error) remark(event, "");
        return;
      default:
        return;
    }
  };
}

/** Shows progress on the last line of a terminal only. */
function createProgressPrinter(output: Output): (event: KitEvent) => void {
  return (event) => {
    if (event.type === "turn_request") output.progress(safeLine(`${event.model} …`));
    else if (event.type === "tool_start") output.progress(safeLine(`${callLine(event.tool, event.args)} …`));
    else if (event.type === "operation" && event.parent_operation_id === undefined) output.progress("");
  };
}

function problemLine({ path, message }: SourceProblem): string {
  return `warning: ${safeLine(path)}: ${safeLine(message)}`;
}

/** Prints the body of the route: whole with `--json`, as the last line of the events with `--stream`. */
export function printBody(
  body: Readonly<Record<string, unknown>>,
  context: CommandContext,
  stream: boolean,
): void {
  if (!context.json) return;
  if (stream) context.output.write(`${toSafeJsonLine({ type: "result", ...body })}\n`);
  else context.output.json(body);
}

/** Prints the result of a run: a text as it is, anything else as JSON. */
export function printRunResult(
  { status, run_id, result }: RunCompleted,
  how: { readonly context: CommandContext; readonly stream: boolean; readonly printer: EventPrinter },
): void {
  const { context, stream, printer } = how;
  const { output, json } = context;
  if (json) printBody({ status, run_id, result: result ?? null }, context, stream);
  else if (typeof result === "string") {
    // A workflow often returns the text that was streamed, which must not be printed twice.
    if (printer.printedText.trim() !== result.trim()) output.line(safeLines(result));
  } else if (result !== undefined && result !== null) output.json(result);
}

/** Prints an error; with `--stream --json` as the last line of the events, of type `error`. */
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
