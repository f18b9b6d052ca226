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

/** A project that is open, with the configuration that it was opened under. */
export interface Configured {
  readonly project: Project;
  readonly loaded: Pick<LoadedConfig, "config">;
  readonly service?: Service | undefined;
}

/** Settings of a server that a configuration does not have. */
export interface UnconfiguredOptions
  extends Pick<ServerOptions, "dev" | "onRequest" | "onRefused" | "onError" | "mask"> {
  readonly insecure?: boolean | undefined;
}

/** Creates the server of a project as the `server` table of its configuration says. */
export function createConfiguredServer(
  { project, loaded, service }: Configured,
  { insecure = false, ...options }: UnconfiguredOptions = {},
): KitServer {
  const { api_keys, auth, authorize, rate_limit, allowed_hosts, allowed_origins, expose, console } =
    loaded.config.server ?? {};
  const { max_body_bytes, max_stream_seconds } = loaded.config.server ?? {};
  return createServer({
    ...options,
    project,
    configuration: loaded.config,
    ...defined({ service, expose, console, authorize, rateLimit: rate_limit }),
    limits: defined({
      bodyBytes: max_body_bytes,
      streamMs: max_stream_seconds === undefined ? undefined : max_stream_seconds * 1_000,
    }),
    access: {
      insecure,
      ...defined({
        apiKeys: api_keys,
        auth,
        allowedHosts: allowed_hosts,
        allowedOrigins: allowed_origins,
      }),
    },
  });
}

/** An application that answers requests without a socket. */
export interface ServedApplication extends OpenedApplication {
  /** Whether the configuration asks for a key, or has `server.auth`. */
  readonly isGuarded: boolean;
  /**
   * Answers a request, under any name where a key or `server.auth` guards the server. `sender` is the address that a rate limit
   * counts.
   */
  fetch(request: Request, sender?: string): Promise<Response>;
}

/**
 * Opens an application that has no project folder, and answers requests for it: for platforms that hand on `Request`s. Its
 * configuration and environment are what `kit start` would read: `KIT_API_KEYS` first of all.
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
  const { api_keys = [], auth } = opened.loaded.config.server ?? {};
  const isGuarded = api_keys.length > 0 || auth !== undefined;
  const server = createConfiguredServer(opened, defined({ onRequest, onError: rest.onError }));
  return {
    ...opened,
    isGuarded,
    // Platforms send the requests of their own names only. Without a guard, the server answers to this machine alone.
    fetch: (request, remoteAddress = "") =>
      server.fetch(request, { localAddress: isGuarded ? "0.0.0.0" : "127.0.0.1", remoteAddress }),
    async close(how) {
      await server.close();
      await opened.close(how);
    },
  };
}
