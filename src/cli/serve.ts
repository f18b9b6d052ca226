import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import type { EventListener } from "../agents/events.ts";
import type { KitConfig } from "../app/config/config-schema.ts";
import { describeEngine, workspacesElsewhere } from "../app/config/engine-config.ts";
import type { LoadedConfig } from "../app/config/load-config.ts";
import { maskOf } from "../app/runtime/known-secrets.ts";
import { isolationOfConfig } from "../app/runtime/open-sandbox.ts";
import type { ProjectService } from "../app/service/service.ts";
import type { Telemetry } from "../app/telemetry/open-telemetry.ts";
import { hasTelemetrySettings } from "../app/telemetry/telemetry-settings.ts";
import { KitError } from "../base/kit-error.ts";
import { defined } from "../base/record.ts";
import type { ServiceLoad } from "../otel/service-metrics.ts";
import type { ScanSummary } from "../project/project.ts";
import { isStoreUnavailable } from "../protocol/error-code.ts";
import type { KitEvent } from "../protocol/event.ts";
import type { Tracing } from "../protocol/tracing.ts";
import { isLoopbackAddress } from "../server/access/access.ts";
import type { RequestEntry } from "../server/answer-request.ts";
import type { KitServer } from "../server/create-server.ts";
import { asText, wholeNumber } from "./choices.ts";
import {
  type CommandContext,
  type CommandOption,
  type ExitCode,
  flag,
  type OptionValues,
  option,
} from "./command.ts";
import { printEndpoint, printWelcome } from "./print/welcome.ts";
import { describeError } from "./report-error.ts";
import { announceServer, findRunningServers, type RunningServer } from "./running-server.ts";
import { type OpenedProject, withLoadedProject, withProject } from "./with-project.ts";

type ServeOptions = {
  readonly port: CommandOption<number>;
  readonly host: CommandOption<string>;
  readonly insecure: CommandOption<boolean>;
  readonly readOnly: CommandOption<boolean>;
  readonly otel: CommandOption<boolean>;
};

export const serveOptions: ServeOptions = {
  port: option(
    "-p, --port <port>",
    "The port (default 2024, or the next free one); 0 takes any",
    wholeNumber(0, 65_535),
  ),
  host: option("--host <address>", "The address to listen on (default 127.0.0.1)", asText),
  insecure: flag("--insecure", "Listen on a public address without asking for a key"),
  readOnly: flag("--read-only", "Refuse every request that writes"),
  otel: flag(
    "--otel",
    "Send traces and metrics by OTLP to OTEL_EXPORTER_OTLP_ENDPOINT (default http://localhost:4318)",
  ),
};

export interface ServeMode {
  readonly dev: boolean;
  /** Serves only the routes of MCP. Commands do not find such a server. */
  readonly only?: "mcp";
  /** The configuration to serve with; default: the server reads it. */
  readonly loaded?: LoadedConfig;
  readonly onRequest?: (entry: RequestEntry) => void;
  /** Called with the setting that would allow a browser whose request was refused. */
  readonly onRefused: (advice: string) => void;
  /** Called after every change of the index. */
  readonly onChange?: (scan: ScanSummary) => void;
  /** Called with each error and its stack; the application's own keys are masked in it. */
  readonly onError: (text: string) => void;
  /** Called with a line about sessions that were removed because of their age. */
  readonly onRemoved: (text: string) => void;
  /** Called with the text of a problem that `onError` reported and that is over. */
  readonly onResolved: (text: string) => void;
  /** Called with the events of agents and workflows, and with the lookup of their spans. */
  readonly onEvent?: (event: KitEvent, tracing: Tracing | undefined) => void;
  /** Called with what telemetry has lost, and with invalid telemetry variables. */
  readonly onTelemetry: (text: string) => void;
  /** Called once the agents are served; disposables that it adds to `closing` end with the server. */
  readonly onServe?: (served: Served, closing: AsyncDisposableStack) => void;
}

export interface Served {
  readonly service: ProjectService;
  readonly loaded: LoadedConfig;
  /** The port on which it listens. */
  readonly port: number;
  readonly onError: ErrorLog;
}

/** Serves the project of a command line until Ctrl-C or SIGTERM, then lets replies and work under way finish. */
export function serve(
  options: OptionValues<ServeOptions>,
  context: CommandContext,
  mode: ServeMode,
): Promise<ExitCode> {
  return openProjectToServe(context, options, {
    ...mode,
    use: async (opened) => {
      await using closing = new AsyncDisposableStack();
      const mask = maskOf(opened.loaded);
      const onError = createErrorLog(mask, mode.onError);
      const accident = closing.use(catchStrayErrors(onError));
      const signal = AbortSignal.any([context.signal, accident.signal]);
      const telemetry = await startTelemetry(opened, options, mode);
      if (telemetry !== undefined) closing.defer(() => telemetry.close(flushMs));
      const { onEvent } = mode;
      const tracing = telemetry?.observer.tracing;
      const service = await openService(opened, options, {
        onError,
        onRemoved: mode.onRemoved,
        onResolved: (text) => mode.onResolved(mask(text)),
        // The observer must log the end of an operation while its span is still open.
        observers: [
          ...(onEvent === undefined ? [] : [(event: KitEvent) => onEvent(event, tracing)]),
          ...(telemetry === undefined ? [] : [telemetry.observer]),
        ],
      });
      if (service !== undefined)
        closing.defer(() => service.close(accident.signal.aborted ? { timeoutMs: 0 } : {}));
      if (service !== undefined && telemetry !== undefined) {
        telemetry.measure(() => loadOf(service));
        closing.defer(() => telemetry.flushMetrics(flushMs));
      }
      const server = await createProjectServer({ ...opened, service }, options, { ...mode, mask, onError });
      closing.defer(() => server.close());
      const address = await listen(server, opened, options);
      const { host, port, url, isSubstitute } = address;
      // Begins once the project is indexed; requests are answered before.
      let watch: { close(): Promise<void> } | undefined;
      opened.project
        .watch((scan) => signal.aborted || mode.onChange?.(scan))
        .then((started) => {
          watch = started;
        })
        .catch((error: unknown) => signal.aborted || onError(error));
      // A watch that waits for the first pass ends with the project, which aborts the pass.
      closing.defer(() => watch?.close());
      if (isKeyOfCommands(opened.loaded)) printUnguarded(context);
      const elsewhere = service === undefined ? undefined : workspacesElsewhere(opened.loaded.config);
      if (elsewhere !== undefined)
        context.output.note(`${context.output.noteStyle("yellow", "warning:")} ${elsewhere}`);
      const unreached = await unreachedOf(service);
      if (unreached !== undefined)
        context.output.note(`${context.output.noteStyle("yellow", "warning:")} ${unreached}`);
      if (service !== undefined) {
        const [other] = await findRunningServers(opened.project.root);
        const isShared = service.engine.capabilities.distributed;
        if (other !== undefined && !isShared) printStandby(context, other);
        if (mode.only === undefined) closing.use(announceServer(opened.project.root, url));
        mode.onServe?.({ service, loaded: opened.loaded, port, onError }, closing);
      }
      const engine = service && engineTextOf(opened.loaded, service);
      const { api_keys, expose } = opened.loaded.config.server ?? {};
      const needsKey = api_keys !== undefined;
      if (context.json) context.output.json({ host, port, url, project: opened.project.name });
      else if (mode.only === "mcp") printEndpoint(context.output, `${url}/mcp`, needsKey);
      else {
        const undeclared =
          expose === "all" ? "served" : mode.dev && isLoopbackAddress(host) ? "dev_only" : "unserved";
        const { project } = opened;
        const isolation =
          service === undefined ? undefined : (await isolationOfConfig(opened.loaded.config)).description;
        printWelcome(context.output, {
          url,
          isSubstitute,
          hasPage: opened.loaded.config.server?.console !== false,
          project,
          app: service?.app,
          undeclared,
          needsKey,
          isolation,
          engine,
        });
      }
      if (!signal.aborted) await once(signal, "abort");
      const patience = setTimeout(() => accident.signal.aborted || printDraining(context), quietMs);
      if (service !== undefined) await leave(service, opened.loaded, accident.signal);
      await closing
        .disposeAsync()
        .catch((error: unknown) => printUnwritten(error, context))
        .finally(() => clearTimeout(patience));
      return accident.signal.aborted ? 1 : 0;
    },
  });
}

/** Opens the project with the configuration of the mode; without one, with that of the command line. */
function openProjectToServe(
  context: CommandContext,
  { readOnly }: Pick<OptionValues<ServeOptions>, "readOnly">,
  {
    dev,
    loaded,
    use,
  }: Pick<ServeMode, "dev" | "loaded"> & {
    readonly use: (opened: OpenedProject) => Promise<ExitCode>;
  },
): Promise<ExitCode> {
  const isReadOnly = ({ server }: KitConfig): boolean => readOnly ?? server?.read_only ?? false;
  return loaded === undefined
    ? withProject(context, use, {
        background: true,
        runsCode: true,
        sendsKeys: true,
        mayAsk: dev,
        dotEnv: dev,
        isReadOnly,
      })
    : withLoadedProject(context, { loaded, readOnly: isReadOnly(loaded.config), background: true }, use);
}

/** The reason why other machines of the cluster cannot reach this one, where its address shows it. */
async function unreachedOf(service: ProjectService | undefined): Promise<string | undefined> {
  const state = await service?.engine.state?.().catch(() => undefined);
  const thisNode = state?.nodes.find(({ is_this }) => is_this)?.node;
  const problem = state?.problems.find(({ code, node }) => code === "no_address" && node === thisNode);
  return problem && `${problem.message} ${problem.hint}`;
}

/** Where accepted work is stored, and where other machines reach this one. */
function engineTextOf({ config, environment }: LoadedConfig, { nodes }: ProjectService): string {
  const text = describeEngine(config, environment);
  return nodes?.address === undefined ? text : `${text} Other machines reach this one at ${nodes.address}.`;
}

/**
 * A drain that takes less than this prints nothing, in ms. It is longer than the time in which a second signal counts as an echo of
 * the first one: the Ctrl-C of a person who reads the line is never taken for an echo.
 */
const quietMs = 1_000;

/**
 * Keeps answering while load balancers learn from `/health` that this server stops, and other nodes take over its
 * work.
 */
async function leave(
  service: ProjectService,
  { config }: LoadedConfig,
  accident: AbortSignal,
): Promise<void> {
  const { distributed } = service.engine.capabilities;
  const seconds = config.server?.drain_seconds ?? (distributed ? sharedDrainSeconds : 0);
  await service.leave().catch(() => undefined);
  await delay(seconds * 1_000, undefined, { signal: accident }).catch(() => undefined);
}

/** How long a server that shares its work keeps answering by default. */
const sharedDrainSeconds = 1;

function printDraining({ output }: CommandContext): void {
  output.note(
    "Requests under way may finish first. Ctrl-C again ends them at once; accepted work continues with the next start.",
  );
}

/** Only events are written this late: accepted work was on disk before its caller got the receipt. */
function printUnwritten(error: unknown, { output }: CommandContext): void {
  if (!isStoreUnavailable(error)) throw error;
  output.note(
    `${output.noteStyle("yellow", "warning:")} ${error.message} The last events are not in it; accepted work is kept, and continues with the next start.`,
  );
}

/** KIT_API_KEY is one letter away from KIT_API_KEYS, and with it the server would require no key. */
function isKeyOfCommands({ config, environment }: LoadedConfig): boolean {
  const { api_keys, auth } = config.server ?? {};
  return Boolean(environment.KIT_API_KEY) && api_keys === undefined && auth === undefined;
}

function printUnguarded({ output }: CommandContext): void {
  output.note(
    `${output.noteStyle("yellow", "warning:")} The server asks for no key: KIT_API_KEY is the key that commands send, KIT_API_KEYS are those of a server.`,
  );
}

/** Two servers of one project are allowed, but seldom intended. */
function printStandby({ output }: CommandContext, { url, pid }: RunningServer): void {
  output.note(
    `${output.noteStyle("yellow", "warning:")} This project is served at ${url} already (process ${pid}). That server does the work; this one takes over when it is gone.`,
  );
}

/** The agents of the project; none for a read-only server, since agents write their state. */
async function openService(
  { project, loaded }: OpenedProject,
  options: OptionValues<ServeOptions>,
  reports: Pick<Served, "onError"> &
    Pick<ServeMode, "onRemoved" | "onResolved"> & { readonly observers: readonly EventListener[] },
): Promise<ProjectService | undefined> {
  if (options.readOnly ?? loaded.config.server?.read_only ?? false) return undefined;
  const { openProjectService } = await import("../app/service/open-project-service.ts");
  return await openProjectService({ project, loaded, ...reports });
}

async function createProjectServer(
  { project, loaded, service }: OpenedProject & { readonly service: ProjectService | undefined },
  options: OptionValues<ServeOptions>,
  {
    onRequest,
    ...mode
  }: Pick<ServeMode, "dev" | "only" | "onRequest" | "onRefused"> &
    Pick<Served, "onError"> & { readonly mask: (text: string) => string },
): Promise<KitServer> {
  const { createConfiguredServer } = await import("../server/serve-application.ts");
  return createConfiguredServer(
    { project, loaded, service },
    { ...mode, insecure: options.insecure, ...defined({ onRequest }) },
  );
}

/** How long a stop waits for the telemetry receiver, in ms. */
const flushMs = 5_000;

/**
 * Telemetry, where `--otel` or the environment asks for it. If only the environment asks and packages are missing,
 * the server starts without it.
 */
async function startTelemetry(
  { loaded }: OpenedProject,
  { otel }: OptionValues<ServeOptions>,
  { onTelemetry }: Pick<ServeMode, "onTelemetry">,
): Promise<Telemetry | undefined> {
  const { environment, config } = loaded;
  if (otel !== true && !hasTelemetrySettings(environment)) return undefined;
  const { openTelemetry } = await import("../app/telemetry/open-telemetry.ts");
  const print = (text: string): void => onTelemetry(maskOf(loaded)(text));
  try {
    return await openTelemetry({ environment, config: config.telemetry, onProblem: print });
  } catch (error) {
    if (otel === true || !(error instanceof KitError && error.code === "unavailable")) throw error;
    print(
      `${error.message} Nothing is traced, although OTEL_EXPORTER_OTLP_ENDPOINT asks for it. ${error.hint}`,
    );
    return undefined;
  }
}

async function loadOf({ engine, approvals }: ProjectService): Promise<ServiceLoad> {
  const [load, waiting] = await Promise.all([engine.load(), approvals.list()]);
  return { ...load, waiting_approvals: waiting.length };
}

const defaultPort = 2024;
/** How many ports after the default one are tried. */
const triedPorts = 20;

interface Listening extends Awaited<ReturnType<KitServer["listen"]>> {
  /** Reports that no port was chosen, and that the default one is taken. */
  readonly isSubstitute: boolean;
}

/** Listens on the chosen port or fails; without a choice, takes the next free port. */
async function listen(
  server: KitServer,
  { loaded }: OpenedProject,
  options: OptionValues<ServeOptions>,
): Promise<Listening> {
  const host = options.host ?? loaded.config.server?.host ?? "127.0.0.1";
  const chosen = options.port ?? loaded.config.server?.port;
  if (chosen !== undefined) return { ...(await server.listen({ host, port: chosen })), isSubstitute: false };
  for (let port = defaultPort; port < defaultPort + triedPorts; port++) {
    try {
      return { ...(await server.listen({ host, port })), isSubstitute: port !== defaultPort };
    } catch (error) {
      if (!(error instanceof KitError && error.code === "conflict")) throw error;
    }
  }
  return { ...(await server.listen({ host, port: 0 })), isSubstitute: true };
}

/** Called with errors while a server runs. */
type ErrorLog = (error: unknown) => void;

/**
 * Passes on errors as text, with their stacks and without the application's own keys: project code may throw a text
 * that contains a key.
 */
export function createErrorLog(mask: (text: string) => string, write: (text: string) => void): ErrorLog {
  return (error) => write(mask(describeError(error)));
}

/** How long a server may take to end after an uncaught exception, in ms. */
const accidentMs = 15_000;

/**
 * Reports what no code caught. After an unhandled rejection, of one tool or workflow, the server continues. After an
 * uncaught exception its state may be inconsistent: the signal fires, so that the server hands on its work and ends its
 * processes as after SIGTERM, but with exit code 1 and within `accidentMs`.
 */
function catchStrayErrors(log: ErrorLog): Disposable & { readonly signal: AbortSignal } {
  const accident = new AbortController();
  const onRejection = (reason: unknown): void => {
    const cause = reason instanceof Error ? reason : new Error(String(reason));
    log(new Error("A promise was rejected that no code awaited.", { cause }));
  };
  const onException = (cause: unknown): void => {
    log(new Error("No code caught this error, so the server ends.", { cause }));
    if (accident.signal.aborted) return;
    // Runs the listeners of `exit`, which end processes and remove folders.
    setTimeout(() => process.exit(1), accidentMs).unref();
    accident.abort();
  };
  process.on("unhandledRejection", onRejection).on("uncaughtException", onException);
  return {
    signal: accident.signal,
    [Symbol.dispose]() {
      process.off("unhandledRejection", onRejection);
      // After an exception, others may follow until the process has ended.
      if (!accident.signal.aborted) process.off("uncaughtException", onException);
    },
  };
}
