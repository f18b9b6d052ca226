import type { RequestEntry } from "../../server/create-server.ts";
import { type Command, defineCommand } from "../command.ts";
import type { Output, Style } from "../output.ts";
import { count } from "../render/places.ts";
import { describeError } from "../report-error.ts";
import { serve, serveOptions } from "../serve.ts";
import { safeLine } from "../text/safe-text.ts";

export const dev: Command = defineCommand({
  options: serveOptions,
  examples: ["kit dev", "kit dev --cwd examples/shop --port 3000"],
  details:
    "As 'kit start', with a line on stderr for every request and every change of a file, and with hint and stack in error replies. Not for a server that others reach.",
  run: ({ options }, context) => {
    const { output } = context;
    const log = (text: string): void => output.note(`${output.noteStyle("dim", clock())}  ${text}`);
    return serve(options, context, {
      dev: true,
      onRequest: (entry) => log(toLogLine(output, entry)),
      onChange: (parsedFiles, durationMs) =>
        log(
          output.noteStyle(
            "magenta",
            `files changed: read ${count(parsedFiles, "file")} again in ${durationMs.toFixed(0)} ms`,
          ),
        ),
      onError: (error) => log(`${output.noteStyle("red", "error")}  ${describeError(error)}`),
    });
  },
});

function clock(): string {
  return new Date().toTimeString().slice(0, 8);
}

function toLogLine(output: Output, { method, path, status, duration_ms }: RequestEntry): string {
  const took = `${duration_ms < 10 ? duration_ms.toFixed(1) : duration_ms.toFixed(0)} ms`;
  return `${output.noteStyle(styleOf(status), String(status))}  ${took.padStart(8)}  ${method} ${safeLine(path)}`;
}

function styleOf(status: number): Style {
  if (status >= 500) return "red";
  return status >= 400 ? "yellow" : "green";
}
