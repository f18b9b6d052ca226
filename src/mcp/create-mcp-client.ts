import type { AnyTool, ValidateJson } from "../agents/define/tool.ts";
import { maskSecrets } from "../agents/secrets.ts";
import { type Clock, systemClock } from "../base/clock.ts";
import { createBrowserLogins } from "./auth/browser-login.ts";
import type { BrowserLogins } from "./auth/browser-logins.ts";
import { cleanLine } from "./clean-text.ts";
import { limits } from "./limits.ts";
import type { McpConfig } from "./servers/mcp-config.ts";
import { ServerLink } from "./servers/server-link.ts";
import { toServerSettings } from "./servers/server-settings.ts";
import { createFindAndCallTools } from "./tools/find-and-call-tools.ts";
import type { Catalogue } from "./tools/listed-tool.ts";
import { downText, leftOutText } from "./tools/missing-tool-text.ts";
import { createServerTool } from "./tools/server-tool.ts";

export interface McpClientOptions {
  readonly config: McpConfig;
  /** The folder that `cwd` of a server is relative to. */
  readonly root: string;
  /** Values for `${NAME}` in the configuration. Servers get no other variables, except `PATH`. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly validateJson: ValidateJson;
  readonly clock?: Clock;
  /** Whether a server can ask the person of a call questions, with `ask` of its context. Default: false. */
  readonly canAsk?: boolean | undefined;
  /** The folder of the person's logins. Default: servers that ask for a login cannot be used. */
  readonly logins?: string | undefined;
}

/** A problem with a server or its tools. */
export interface McpProblem {
  readonly server: string;
  /** Sentences that are safe for every reader. */
  readonly message: string;
  /** The end of the process's stderr: for the person who configured it, never for a log that leaves the machine. */
  readonly details?: string;
}

/** The state of a configured server. */
export interface McpServerState {
  readonly server: string;
  /** The names of its tools for models. */
  readonly tools: readonly string[];
  readonly isAvailable: boolean;
  readonly problems: readonly McpProblem[];
}

/** The tools of the configured MCP servers, over one connection to each. */
export interface McpClient {
  /**
   * Returns the current tools; an unchanged tool is the same object as before. The first call connects the servers.
   * A server that is down is skipped and reported to `onProblem`; only an abort makes the call reject.
   */
  tools(options?: {
    readonly signal?: AbortSignal;
    readonly onProblem?: (problem: McpProblem) => void;
  }): Promise<readonly AnyTool[]>;
  /** Explains to a model why a tool of this full name is missing: a limit, or a server that is down; `undefined` if neither applies. */
  whyMissing(name: string): string | undefined;
  /** The problems of servers that have been used so far. */
  problems(): readonly McpProblem[];
  /** Connects to every server and reports its state. */
  inspect(signal?: AbortSignal): Promise<readonly McpServerState[]>;
  /** The logins of persons at the servers. */
  readonly logins: BrowserLogins;
  /** Closes the connections, and ends every server process. */
  close(): Promise<void>;
}

const defaultSearchLimit = 10;

/** Creates a client of the configured servers. Throws `invalid_request` for an invalid configuration. */
export function createMcpClient(options: McpClientOptions): McpClient {
  const { config, validateJson, clock = systemClock } = options;
  const isSearch = config.mode === "search_execute";
  const context = { ...options, maxTools: isSearch ? limits.tools : limits.directTools };
  const links = Object.entries(config.servers ?? {}).map(
    ([name, server]) => new ServerLink(toServerSettings(name, server, context), clock),
  );
  const reported = new WeakSet<object>();
  const source = isSearch
    ? createSearchSource({ links, searchLimit: config.search_limit ?? defaultSearchLimit, validateJson })
    : createDirectSource(links, validateJson);
  // Unless kit itself is killed with SIGKILL, its exit ends the servers that it started.
  const killAll = (): void => {
    for (const link of links) link.kill();
  };
  let isUsed = false;
  const use = (): void => {
    if (!isUsed) process.once("exit", killAll);
    isUsed = true;
  };

  return {
    async tools({ signal, onProblem } = {}) {
      use();
      const tools = await source(signal);
      if (onProblem !== undefined) for (const problem of newProblems(links, reported)) onProblem(problem);
      return tools;
    },
    whyMissing: (name) => leftOutText(name, links) ?? downText(name, links),
    problems: () => links.flatMap(problemsOf),
    async inspect(signal) {
      use();
      await Promise.all(links.map((link) => link.catalogue(signal)));
      return links.map((link) => ({
        server: link.name,
        tools: (link.lastCatalogue()?.tools ?? []).map((tool) => tool.fullName),
        isAvailable: link.failure() === undefined,
        problems: problemsOf(link),
      }));
    },
    logins: createBrowserLogins(links),
    async close() {
      await Promise.allSettled(links.map((link) => link.close()));
      process.off("exit", killAll);
    },
  };
}

type ToolSource = (signal?: AbortSignal) => Promise<readonly AnyTool[]>;

/** Connects the servers when the model first searches. */
function createSearchSource(options: Parameters<typeof createFindAndCallTools>[0]): ToolSource {
  const tools = options.links.length === 0 ? [] : createFindAndCallTools(options);
  return async () => tools;
}

/** Offers every tool of every server. A tool with an unchanged definition is the same object as before. */
function createDirectSource(links: readonly ServerLink[], validateJson: ValidateJson): ToolSource {
  const offers = new Map<ServerLink, Offer>();
  const offerOf = async (link: ServerLink, signal: AbortSignal | undefined): Promise<readonly AnyTool[]> => {
    const catalogue = await link.catalogue(signal);
    const before = offers.get(link);
    if (catalogue === undefined || catalogue === before?.catalogue) return before?.ordered ?? [];
    const knownTools = new Map(
      before?.catalogue.tools.map((listed, index) => [listed.fingerprint, before.tools[index]]),
    );
    const tools = catalogue.tools.map(
      (listed) => knownTools.get(listed.fingerprint) ?? createServerTool(link, listed, validateJson),
    );
    // The server may list its tools in any order, but the order of a prompt's tools must not change.
    const ordered = tools.toSorted((one, other) => (one.name < other.name ? -1 : 1));
    offers.set(link, { catalogue, tools, ordered });
    return ordered;
  };
  return async (signal) => (await Promise.all(links.map((link) => offerOf(link, signal)))).flat();
}

interface Offer {
  readonly catalogue: Catalogue;
  /** In the order of the catalogue. */
  readonly tools: readonly AnyTool[];
  /** By name. */
  readonly ordered: readonly AnyTool[];
}

function problemsOf(link: ServerLink): readonly McpProblem[] {
  return [...failuresOf(link), ...notificationProblemsOf(link), ...remarksOf(link)];
}

function failuresOf(link: ServerLink): readonly McpProblem[] {
  const failure = link.failure();
  if (failure === undefined) return [];
  const problem = toProblem(link, `It is not available. ${failure.message}`);
  const details = maskSecrets(cleanLine(failure.details, limits.errorChars), link.settings.secrets);
  return [details === "" ? problem : { ...problem, details }];
}

function remarksOf(link: ServerLink): readonly McpProblem[] {
  return (link.lastCatalogue()?.remarks ?? []).map((remark) => toProblem(link, remark));
}

function notificationProblemsOf(link: ServerLink): readonly McpProblem[] {
  const why = link.unheard();
  if (why === undefined) return [];
  const message = `kit no longer waits for its notifications, so changes of its tools are noticed only after the next connection. ${why.message}`;
  return [toProblem(link, message)];
}

function toProblem(link: ServerLink, message: string): McpProblem {
  return { server: link.name, message: maskSecrets(message, link.settings.secrets) };
}

// Report a failure to every operation that has to work without the server, but a remark only once.
function* newProblems(links: readonly ServerLink[], reported: WeakSet<object>): Iterable<McpProblem> {
  for (const link of links) {
    yield* failuresOf(link);
    const unheard = link.unheard();
    if (unheard !== undefined && !reported.has(unheard)) yield* notificationProblemsOf(link);
    if (unheard !== undefined) reported.add(unheard);
    const catalogue = link.lastCatalogue();
    if (catalogue === undefined || reported.has(catalogue)) continue;
    reported.add(catalogue);
    yield* remarksOf(link);
  }
}
