import { statSync } from "node:fs";
import { basename } from "node:path";
import type { ProjectService } from "../../app/service/service.ts";
import { projectTypesFile } from "../../app/sources/write-project-types.ts";
import type { ScanSummary } from "../../project/project.ts";
import type { RequestEntry } from "../../server/answer-request.ts";
import { type Command, defineCommand } from "../command.ts";
import { createActivityLog } from "../dev/activity-log.ts";
import { updateProjectTypes, usesProjectTypes } from "../dev/update-project-types.ts";
import type { Output, Style } from "../print/output.ts";
import { count } from "../print/table.ts";
import { secretWarnings } from "../print/welcome.ts";
import { serve, serveOptions } from "../serve.ts";
import { safeLine } from "../text/safe-text.ts";

export const dev: Command = defineCommand({
  drains: true,
  options: serveOptions,
  examples: ["kit dev", "kit dev --cwd examples/shop --port 3000"],
  details:
    "Like 'kit start', with a line on stderr for every request, for what agents and workflows do and for every changed file, and with hint and stack in error replies. Loads agents and workflows again when their files change; sessions continue. Do not use it for a server that others can reach.",
  run: ({ options }, context) => {
    const { output } = context;
    const log = (text: string): void => output.note(`${output.noteStyle("dim", clock())}  ${text}`);
    return serve(options, context, {
      dev: true,
      onRequest: (entry) => log(toLogLine(output, entry)),
      onRefused: (advice) => log(`${output.noteStyle("yellow", "warning")}  ${safeLine(advice)}`),
      onChange: (scan) => {
        // Only changes of spec and guideline files are printed: other files change all the time.
        if (scan.parsed_files + scan.removed_files > 0) log(output.noteStyle("magenta", toChangeLine(scan)));
      },
      onError: (text) => log(`${output.noteStyle("red", "error")}  ${text}`),
      onRemoved: (text) => log(output.noteStyle("magenta", safeLine(text))),
      onResolved: (text) => log(`${output.noteStyle("green", "resolved")}  ${safeLine(text)}`),
      onTelemetry: (text) => log(`${output.noteStyle("yellow", "warning")}  ${safeLine(text)}`),
      onServe({ service, configFile, onError }, closing) {
        closing.defer(service.app.onEvent(createActivityLog({ output, log })));
        const keepTypes = async (): Promise<void> => {
          const hasSources = service.app.agents().length + service.app.workflows().length > 0;
          const { root, signal } = context;
          if (hasSources && usesProjectTypes(root) && (await updateProjectTypes({ root, signal }))) {
            log(
              output.noteStyle("magenta", `${projectTypesFile} written: the types of agents and workflows`),
            );
          }
        };
        const reload = async (): Promise<void> => {
          await reloadSources(service, output, log);
          await keepTypes();
        };
        keepTypes().catch(onError);
        closing.use(followChanges({ hasChanged: service.app.hasChanged, reload, onError }));
        if (configFile === undefined) return;
        const text = `${basename(configFile)} changed: restart kit dev to apply it`;
        const remind = async (): Promise<void> => log(output.noteStyle("yellow", text));
        closing.use(followChanges({ hasChanged: fileChanges(configFile), reload: remind, onError }));
      },
    });
  },
});

/** How often the files are checked, in ms: a check costs a `stat` for each of a few files. */
const periodMs = 300;

/** Polls for a change and then calls `reload`. Errors are reported, and polling continues. */
function followChanges(options: {
  readonly hasChanged: () => Promise<boolean>;
  readonly reload: () => Promise<void>;
  readonly onError: (error: unknown) => void;
}): AsyncDisposable {
  let isClosed = false;
  let check: Promise<void> = Promise.resolve();
  const checkForChanges = async (): Promise<void> => {
    try {
      if (await options.hasChanged()) await options.reload();
    } catch (error) {
      options.onError(error);
    }
    if (!isClosed) timer = setTimeout(begin, periodMs);
  };
  const begin = (): void => {
    check = checkForChanges();
  };
  let timer = setTimeout(begin, periodMs);
  return {
    async [Symbol.asyncDispose]() {
      isClosed = true;
      clearTimeout(timer);
      await check;
    },
  };
}

/** Each call returns whether the file's modification time has changed since the call before, or the file is gone. */
function fileChanges(file: string): () => Promise<boolean> {
  const timeOf = (): number | undefined => statSync(file, { throwIfNoEntry: false })?.mtimeMs;
  let configTime = timeOf();
  return async () => {
    const before = configTime;
    configTime = timeOf();
    return configTime !== before;
  };
}

async function reloadSources(
  service: ProjectService,
  output: Output,
  log: (text: string) => void,
): Promise<void> {
  await service.reload();
  const { app } = service;
  const numbers = [count(app.agents().length, "agent"), count(app.workflows().length, "workflow")];
  log(output.noteStyle("magenta", `sources changed: ${numbers.join(" and ")} read again`));
  for (const { path, message } of app.problems()) {
    log(`${output.noteStyle("red", "error")}  ${safeLine(path)}: ${safeLine(message)}`);
  }
  for (const warning of secretWarnings(app)) {
    log(`${output.noteStyle("yellow", "warning")}  ${safeLine(warning)}`);
  }
}

function clock(): string {
  return new Date().toTimeString().slice(0, 8);
}

function toChangeLine({ parsed_files, removed_files, duration_ms }: ScanSummary): string {
  const removedText = removed_files === 0 ? "" : `, ${count(removed_files, "file")} gone`;
  return `files changed: read ${count(parsed_files, "file")} again${removedText}, in ${duration_ms.toFixed(0)} ms`;
}

function toLogLine(output: Output, { method, path, status, duration_ms }: RequestEntry): string {
  const took = `${duration_ms < 10 ? duration_ms.toFixed(1) : duration_ms.toFixed(0)} ms`;
  return `${output.noteStyle(styleOf(status), String(status))}  ${took.padStart(8)}  ${method} ${safeLine(path)}`;
}

function styleOf(status: number): Style {
  if (status >= 500) return "red";
  return status >= 400 ? "yellow" : "green";
}
