import { statSync } from "node:fs";
import { basename } from "node:path";
import type { LoadedConfig } from "../../app/config/load-config.ts";
import type { ProjectService } from "../../app/service/service.ts";
import type { SourceProblem } from "../../app/sources/discover-sources.ts";
import { projectTypesFile } from "../../app/sources/write-project-types.ts";
import type { ScanSummary } from "../../project/project.ts";
import type { RequestEntry } from "../../server/answer-request.ts";
import { type Command, type CommandContext, defineCommand } from "../command.ts";
import { createActivityLog } from "../dev/activity-log.ts";
import { updateProjectTypes, usesProjectTypes } from "../dev/update-project-types.ts";
import { tryProjectAgents } from "../doctor/check-agents.ts";
import type { Output, Style } from "../print/output.ts";
import { count } from "../print/table.ts";
import { secretWarnings } from "../print/welcome.ts";
import { describeError, toKnownError } from "../report-error.ts";
import { type Served, type ServeMode, serve, serveOptions } from "../serve.ts";
import { safeLine, safeLines } from "../text/safe-text.ts";
import { readProjectConfig } from "../with-project.ts";

export const dev: Command = defineCommand({
  drains: true,
  options: serveOptions,
  examples: ["kit dev", "kit dev --cwd examples/shop --port 3000"],
  details:
    "Like 'kit start', with a line on stderr for every request, for what agents and workflows do and for every changed file, and with hint and stack in error replies. Loads agents, workflows and the configuration again when their files change; sessions and accepted work continue. Do not use it for a server that others can reach.",
  async run({ options }, context) {
    const { output } = context;
    const log = (text: string): void =>
      output.note(`${output.noteStyle("dim", new Date().toTimeString().slice(0, 8))}  ${text}`);
    let loaded: LoadedConfig | undefined;
    let replaced: LoadedConfig | undefined;
    let { port } = options;
    for (;;) {
      const changed = new AbortController();
      let next: LoadedConfig | undefined;
      const signal = AbortSignal.any([context.signal, changed.signal]);
      const mode = createDevMode(context, log, (served, renewed) => {
        next = renewed;
        replaced = served.loaded;
        // The same port again, unless the configuration names another one.
        const isOpen = options.port === undefined || options.port === 0;
        if (isOpen) port = renewed.config.server?.port === undefined ? served.port : undefined;
        changed.abort();
      });
      try {
        const given = loaded === undefined ? {} : { loaded };
        const exitCode = await serve({ ...options, port }, { ...context, signal }, { ...mode, ...given });
        if (next === undefined || context.signal.aborted) return exitCode;
        loaded = next;
      } catch (error) {
        if (replaced === undefined || loaded === replaced || context.signal.aborted) throw error;
        log(`${output.noteStyle("red", "error")}  ${safeLines(describeError(error))}`);
        log(output.noteStyle("yellow", "The configuration from before is used again."));
        loaded = replaced;
      }
    }
  },
});

/** How a `kit dev` serves until its configuration changes. */
function createDevMode(
  context: CommandContext,
  log: (text: string) => void,
  onConfig: (served: Served, renewed: LoadedConfig) => void,
): ServeMode {
  const { output, root, signal } = context;
  const problem = ({ path, message }: SourceProblem): void =>
    log(`${output.noteStyle("red", "error")}  ${safeLine(path)}: ${safeLine(message)}`);
  return {
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
    onServe(served, closing) {
      const { service, loaded, onError } = served;
      closing.defer(service.app.onEvent(createActivityLog({ output, log })));
      const keepTypes = async (): Promise<void> => {
        const hasSources = service.app.agents().length + service.app.workflows().length > 0;
        if (hasSources && usesProjectTypes(root) && (await updateProjectTypes({ root, signal })))
          log(output.noteStyle("magenta", `${projectTypesFile} written: the types of agents and workflows`));
      };
      const tryCode = async (): Promise<void> =>
        (await tryProjectAgents(service.app.agents(), { root, loaded })).forEach(problem);
      const reload = async (): Promise<void> => {
        await reloadSources(service, output, log);
        await Promise.all([keepTypes(), tryCode()]);
      };
      Promise.all([keepTypes(), tryCode()]).catch(onError);
      closing.use(followChanges({ hasChanged: service.app.hasChanged, reload, onError }));
      const { file } = loaded;
      if (file === undefined) return;
      const renew = async (): Promise<void> => {
        const renewed = await readRenewed(context, file, log);
        if (renewed === undefined) return;
        log(output.noteStyle("magenta", `${basename(file)} changed: serving again with it`));
        onConfig(served, renewed);
      };
      closing.use(followChanges({ hasChanged: fileChanges(file), reload: renew, onError }));
    },
  };
}

/** The configuration as its file is now; undefined, with the reason in the log, where kit cannot use it. */
async function readRenewed(
  context: CommandContext,
  file: string,
  log: (text: string) => void,
): Promise<LoadedConfig | undefined> {
  const { output } = context;
  const refuse = (why: string): undefined => {
    const text = `${safeLine(why)} The configuration from before stays in use.`;
    log(`${output.noteStyle("red", "error")}  ${text}`);
  };
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined) return refuse(`${basename(file)} is gone.`);
  try {
    const renewed = await readProjectConfig(context, {
      dotEnv: true,
      runsCode: true,
      version: String(stats.mtimeMs),
    });
    if (renewed.untrusted === undefined) return renewed;
    return refuse(
      `${basename(file)} names addresses for your keys that you have not trusted: start kit dev again, which asks.`,
    );
  } catch (error) {
    const { message, hint = "" } = toKnownError(error);
    return refuse(`${message} ${hint}`.trimEnd());
  }
}

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
