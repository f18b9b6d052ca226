import { join } from "node:path";
import { KitError } from "../../../base/kit-error.ts";
import { invalid } from "../../../files/file-error.ts";
import type { ExecRequest, ExecResult } from "../../contract.ts";
import { enclose } from "../wall/enclose.ts";
import { withPlace } from "../with-place.ts";
import type { View } from "../workspace.ts";
import { composeEnvironment } from "./environment.ts";
import { runProcess } from "./run-process.ts";

const defaultTimeoutMs = 120_000;
const defaultMaxOutputBytes = 1024 * 1024;

/** Runs a command in a folder of the workspace, entered by the same walk as files are found. */
export async function exec(view: View, request: ExecRequest): Promise<ExecResult> {
  const { signal } = request;
  signal?.throwIfAborted();
  if (view.workspace.closing.aborted) {
    throw new KitError({ code: "unavailable", message: "The sandbox is closed." });
  }
  const [program, ...args] = argumentsOf(request.command);
  if (program === undefined || program === "") throw invalid("There is no command to run.");
  if ([program, ...args].some((word) => word.includes("\0"))) {
    throw invalid("A command has no NUL characters.");
  }
  const { workspace } = view;
  return await withPlace(view, request.cwd ?? "", {
    end: "folder",
    work: async (place) => {
      const launch = await enclose(workspace, {
        program,
        args,
        folder: join(workspace.root, place.path),
        environment: composeEnvironment(workspace.root, [await workspace.environment(), request.env ?? {}]),
        access: request.access ?? {},
      });
      const running = runProcess({
        ...launch,
        folder: place.folder,
        timeoutMs: request.timeoutMs ?? defaultTimeoutMs,
        maxOutputBytes: request.maxOutputBytes ?? defaultMaxOutputBytes,
        signals: signal === undefined ? [workspace.closing] : [workspace.closing, signal],
        ...(request.stdin === undefined ? {} : { stdin: request.stdin }),
        ...(request.onOutput === undefined ? {} : { onOutput: request.onOutput }),
      });
      return await running.finally(launch.close);
    },
  });
}

function argumentsOf(command: ExecRequest["command"]): readonly string[] {
  // A line that starts with a dash is not an option of the shell.
  return typeof command === "string" ? ["/bin/sh", "-c", "--", command] : command;
}
