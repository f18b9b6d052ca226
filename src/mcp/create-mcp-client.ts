import type { AnyTool } from "../agents/define/tool.ts";
import { maskSecrets } from "../agents/secrets.ts";
import { type Clock, systemClock } from "../base/clock.ts";
import { cleanLine } from "./clean-text.ts";
import { limits } from "./limits.ts";
import type { McpConfig } from "./servers/mcp-config.ts";
import { createServerLink, type ServerLink } from "./servers/server-link.ts";
import { toServerSettings } from "./servers/server-settings.ts";
import { createFindAndCallTools } from "./tools/find-and-call-tools.ts";
import type { Catalogue } from "./tools/listed-tool.ts";
import { downText, leftOutText } from "./tools/missing-tool-text.ts";
import { createServerTool, type ValidateJson } from "./tools/server-tool.ts";

export interface McpClientOptions {
  readonly config: McpConfig;
  /** The folder that `cwd` of a server is relative to. */
  readonly root: string;
  /** Looks up `${NAME}` of the configuration. Servers get nothing else of it, but `PATH`. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly validateJson: ValidateJson;
  readonly clock?: Clock;
}

/** A problem of a server, or of its tools. */
export interface McpProblem {
  readonly server: string;
  /** Sentences that anybody may read. */
  readonly message: string;
  /** The end of its process's stderr: for the person who configured it, never for a log that leaves the machine. */
  readonly details?: string;
}

/** A server as it is found to be. */
export interface McpServerState {
  readonly server: string;
  /** The names of its tools, as models know them. */
  readonly tools: readonly string[];
  readonly isAvailable: boolean;
  readonly problems: readonly McpProblem[];
}

/** The tools of the configured MCP servers, over one connection to each. */
export interface McpClient {
  /**
   * The tools as they are now; the same objects while they are the same. Servers are connected when it is
   * first asked. One that is down is left out and told to `onProblem`; only the signal makes it reject.
   */
  tools(options?: {
    readonly signal?: AbortSignal;
    readonly onProblem?: (problem: McpProblem) => void;
  }): Promise<readonly AnyTool[]>;
  /** Why a tool of that whole name is not among them, for a model: a limit, or a server that is down; undefined where it is neither. */
  whyMissing(name: string): string | undefined;
  /** As far as the servers were needed. */
  problems(): readonly McpProblem[];
  /** Connects to every server to see what it is like. */
  inspect(signal?: AbortSignal): Promise<readonly McpServerState[]>;
  /** Ends the connections, and every process that was started. */
  close(): Promise<void>;
}

const defaultSearchLimit = 10;

/** Creates a client of the configured servers. Throws `invalid_request` for a configuration that is none. */
export function createMcpClient(options: McpClientOptions): McpClient {
  const { config, validateJson, clock = systemClock } = options;
  const isSearch = config.mode === "search_execute";
  const world = { ...options, maxTools: isSearch ? limits.tools : limits.directTools };
  const links = Object.entries(config.servers ?? {}).map(([name, server]) =>
    createServerLink(toServerSettings(name, server, world), clock),
  );
  const reported = new WeakSet<object>();
  const source = isSearch
    ? createSearchSource({ links, searchLimit: config.search_limit ?? defaultSearchLimit, validateJson })
    : createDirectSource(links, validateJson);
  // Every end of kit, short of a kill -9, ends the servers it started.
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
        tools: (link.known()?.tools ?? []).map((tool) => tool.fullName),
        isAvailable: link.failure() === undefined,
        problems: problemsOf(link),
      }));
    },
    async close() {
      await Promise.allSettled(links.map((link) => link.close()));
      process.off("exit", killAll);
    },
  };
}

type ToolSource = (signal?: AbortSignal) => Promise<readonly AnyTool[]>;

/** The servers are connected when the model first searches, not before. */
function createSearchSource(options: Parameters<typeof createFindAndCallTools>[0]): ToolSource {
  const tools = options.links.length === 0 ? [] : createFindAndCallTools(options);
  return async () => tools;
}

/** Every tool of every server. A tool whose definition did not change is the same object as before. */
function createDirectSource(links: readonly ServerLink[], validateJson: ValidateJson): ToolSource {
  const offers = new Map<ServerLink, Offer>();
  const offerOf = async (link: ServerLink, signal: AbortSignal | undefined): Promise<readonly AnyTool[]> => {
    const catalogue = await link.catalogue(signal);
    const before = offers.get(link);
    if (catalogue === undefined || catalogue === before?.catalogue) return before?.ordered ?? [];
    const known = new Map(
      before?.catalogue.tools.map((listed, index) => [listed.fingerprint, before.tools[index]]),
    );
    const tools = catalogue.tools.map(
      (listed) => known.get(listed.fingerprint) ?? createServerTool(link, listed, validateJson),
    );
    // The server may list its tools in any order; the order of a prompt's tools has to stay.
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
  return [...failuresOf(link), ...unheardOf(link), ...remarksOf(link)];
}

function failuresOf(link: ServerLink): readonly McpProblem[] {
  const failure = link.failure();
  if (failure === undefined) return [];
  const problem = toProblem(link, `It is not available. ${failure.message}`);
  const details = maskSecrets(cleanLine(failure.details, limits.errorChars), link.settings.secrets);
  return [details === "" ? problem : { ...problem, details }];
}

function remarksOf(link: ServerLink): readonly McpProblem[] {
  return (link.known()?.remarks ?? []).map((remark) => toProblem(link, remark));
}

function unheardOf(link: ServerLink): readonly McpProblem[] {
  const why = link.unheard();
  if (why === undefined) return [];
  const message = `Its notifications are given up, so changes of its tools are not heard until it is connected again. ${why.message}`;
  return [toProblem(link, message)];
}

function toProblem(link: ServerLink, message: string): McpProblem {
  return { server: link.name, message: maskSecrets(message, link.settings.secrets) };
}

// A failure is told to every operation that has to do without the server, remarks once.
function* newProblems(links: readonly ServerLink[], reported: WeakSet<object>): Iterable<McpProblem> {
  for (const link of links) {
    yield* failuresOf(link);
    const unheard = link.unheard();
    if (unheard !== undefined && !reported.has(unheard)) yield* unheardOf(link);
    if (unheard !== undefined) reported.add(unheard);
    const catalogue = link.known();
    if (catalogue === undefined || reported.has(catalogue)) continue;
    reported.add(catalogue);
    yield* remarksOf(link);
  }
}
