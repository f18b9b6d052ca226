import type { LoadedConfig } from "../app/config/load-config.ts";
import type {
  ApplicationData,
  ApplicationIndex,
  OpenApplicationOptions,
  OpenedApplication,
} from "../app/service/open-application.ts";
import type { Service } from "../app/service/service.ts";
import { defined } from "../base/record.ts";
import type { Project } from "../project/project.ts";
import { createServer, type KitServer, type ServerOptions } from "./create-server.ts";

/** An open project with its configuration. */
export interface Configured {
  readonly project: Project;
  readonly loaded: Pick<LoadedConfig, "config">;
  readonly service?: Service | undefined;
}

/** Settings of a server that are not in the configuration. */
export interface UnconfiguredOptions
  extends Pick<ServerOptions, "dev" | "only" | "onRequest" | "onRefused" | "onError" | "mask"> {
  readonly insecure?: boolean | undefined;
}

/** Creates the server of a project with the `server` table of its configuration. */
export function createConfiguredServer(
  { project, loaded, service }: Configured,
  { insecure = false, ...options }: UnconfiguredOptions = {},
): KitServer {
  const { api_keys, auth, authorize, rate_limit, allowed_hosts, allowed_origins, expose, console } =
    loaded.config.server ?? {};
  const {
    max_body_bytes,
    max_stream_seconds,
    oauth,
    mcp,
    a2a,
    public_url: publicUrl,
  } = loaded.config.server ?? {};
  return createServer({
    ...options,
    project,
    configuration: loaded.config,
    mcp: defined({
      approvals: mcp?.approvals,
      waitMs: mcp?.wait_seconds === undefined ? undefined : mcp.wait_seconds * 1_000,
    }),
    a2a: defined({ url: publicUrl, ...a2a }),
    ...defined({ publicUrl, service, expose, console, authorize, rateLimit: rate_limit }),
    limits: defined({
      bodyBytes: max_body_bytes,
      streamMs: max_stream_seconds === undefined ? undefined : max_stream_seconds * 1_000,
    }),
    access: {
      insecure,
      ...defined({
        apiKeys: api_keys,
        auth,
        oauth,
        allowedHosts: allowed_hosts,
        allowedOrigins: allowed_origins,
      }),
    },
  });
}

/** An application that answers requests without a socket. */
export interface ServedApplication extends OpenedApplication {
  /** Whether the configuration has keys or `server.auth`. */
  readonly isGuarded: boolean;
  /**
   * Answers a request; with a key or `server.auth`, under any host name. `sender` is the address for the rate
   * limit.
   */
  fetch(request: Request, sender?: string): Promise<Response>;
}

/**
 * Opens an application without a project folder and answers its requests, for platforms that pass `Request` objects. Its
 * configuration and environment are those of `kit start`; set `KIT_API_KEYS` first.
 *
 * @example
 * import { createAgent } from "kit";
 * import { serveApplication } from "kit/server";
 *
 * const served = await serveApplication({
 *   name: "shop",
 *   files: { "AGENTS.md": "# Rules\n\nAmounts are whole cents.\n" },
 *   modules: { "src/agents/helper.ts": async () => ({ default: createAgent({ model: "offline/guide" }) }) },
 * });
 * const reply = await served.fetch(new Request("http://localhost/health"));
 * console.log(await reply.json());
 * await served.close();
 */
export async function serveApplication(
  data: ApplicationData,
  options: OpenApplicationOptions & ApplicationIndex & Pick<UnconfiguredOptions, "onRequest"> = {},
): Promise<ServedApplication> {
  const { openApplication } = await import("../app/service/open-application.ts");
  const { onRequest, ...rest } = options;
  const opened = await openApplication(data, rest);
  const { api_keys = [], auth, oauth } = opened.loaded.config.server ?? {};
  const isGuarded = api_keys.length > 0 || auth !== undefined || oauth !== undefined;
  const server = createConfiguredServer(opened, defined({ onRequest, onError: rest.onError }));
  return {
    ...opened,
    isGuarded,
    // Platforms only pass requests for their own host names. Without a guard, the server only accepts names of this machine.
    fetch: (request, remoteAddress = "") =>
      server.fetch(request, { localAddress: isGuarded ? "0.0.0.0" : "127.0.0.1", remoteAddress }),
    async close(how) {
      await server.close();
      await opened.close(how);
    },
  };
}
