import type { Frame } from "@pydantic/monty";
import { exceptionLine, type PythonExceptionInfo } from "../python-error.ts";
import type { LineOrigin } from "./compose-program.ts";
import type { RefusedCode } from "./refused-code.ts";
import { RunFailed } from "./run-failed.ts";

/** The most frames shown of a deep stack, half of them from each end. */
const maxFrames = 20;

const maxSourceChars = 200;

type Place = Omit<Frame, "filename">;

/** A traceback in Python's format, of the frames that `originOf` knows. */
export function formatTraceback(
  exception: PythonExceptionInfo,
  frames: readonly Place[],
  originOf: (line: number) => LineOrigin | undefined,
): string {
  const printed = frames.flatMap((frame) => {
    const origin = originOf(frame.line);
    return origin === undefined ? [] : [frameText(frame, origin)];
  });
  const dropped = printed.length - maxFrames;
  if (dropped > 0) printed.splice(maxFrames / 2, dropped, `  [… ${dropped} more calls …]`);
  const lines = printed.length === 0 ? [] : ["Traceback (most recent call last):", ...printed];
  return [...lines, exceptionLine(exception)].join("\n");
}

function frameText(frame: Place, origin: LineOrigin): string {
  const place = frame.functionName === undefined ? "" : `, in ${frame.functionName.slice(0, 100)}`;
  const head = `  File "${origin.file}", line ${origin.line}${place}`;
  const { source } = origin;
  if (source.trim() === "" || source.length > maxSourceChars) return head;
  const indent = source.length - source.trimStart().length;
  const end = frame.endLine === frame.line ? frame.endColumn : source.length + 1;
  const marks = "~".repeat(Math.max(0, Math.min(end, source.length + 1) - frame.column));
  const pointer = marks === "" ? "" : `\n    ${" ".repeat(Math.max(0, frame.column - 1 - indent))}${marks}`;
  return `${head}\n    ${source.trim()}${pointer}`;
}

export function refusedFailure({ from, to, message }: RefusedCode, code: string): RunFailed {
  const exception = { type: "NotImplementedError", message };
  const before = code.slice(0, from).split("\n");
  const line = before.length;
  const column = (before.at(-1) ?? "").length + 1;
  const source = code.split("\n")[line - 1] ?? "";
  const frame = { line, column, endLine: line, endColumn: Math.min(column + to - from, source.length + 1) };
  const traceback = formatTraceback(exception, [frame], () => ({ file: "main.py", line, source }));
  return new RunFailed(exception, { traceback, cause: undefined });
}
