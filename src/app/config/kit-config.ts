import type { McpConfig } from "../../mcp/servers/mcp-config.ts";
import type { ProviderConfigs } from "../../models/provider-config.ts";
import type { ProjectConfig } from "../../project/project.ts";
import type { AuthorizeHook, AuthResult, RateLimit } from "../../protocol/access.ts";
import type { SessionStore } from "../../stores/contract.ts";
import type { PostgresUrl } from "../../stores/postgres/is-postgres-url.ts";
import type { AgentConfig, CompactionConfig } from "./agent-config.ts";
import type { EngineConfig, SessionsConfig } from "./engine-config.ts";
import type { SandboxConfig } from "./sandbox-config.ts";
import type { TelemetryConfig } from "./telemetry-config.ts";

/** What `server.auth` is told about a request. */
export interface AuthRequest {
  readonly method: string;
  /** As sent, percent-encoded, without the query. */
  readonly path: string;
  readonly headers: Headers;
  /** Of a request to an agent: its name. */
  readonly agent?: string;
  /** Of a request to an agent: the id of its instance. */
  readonly instance_id?: string;
}

/**
 * Where the histories of sessions are kept: `sqlite` (default, in `.kit/sessions.db`), `memory`, the address of a
 * Postgres database (`postgres://…`), or, in `kit.config.ts`, a store.
 */
export type StoreConfig = "sqlite" | "memory" | PostgresUrl | SessionStore;

/**
 * Which agents requests reach: those whose file declares `triggers = { webhook: true }` (`declared`, the
 * default), or `all`.
 */
export type Exposure = (typeof exposures)[number];
export const exposures = ["declared", "all"] as const;

/** How `kit start` serves. */
export interface ServerConfig {
  /** The address to listen on; default 127.0.0.1. */
  readonly host?: string;
  /** 0 to 65535; default 2024. 0 takes any free port. */
  readonly port?: number;
  /** Which agents requests reach; default `declared`: others answer 404 `agent_not_webhook`. */
  readonly expose?: Exposure;
  /** Requests must carry one of these as a bearer token. Better given as `KIT_API_KEYS`. */
  readonly api_keys?: readonly string[];
  /** Says whether a request may pass, or who it is that passes; asked after the keys. Only in `kit.config.ts`. */
  readonly auth?: (request: AuthRequest) => AuthResult | Promise<AuthResult>;
  /** Says whether somebody may do what a request asks for. Only in `kit.config.ts`. */
  readonly authorize?: AuthorizeHook;
  /** How many requests each principal may make; without it, as many as the server can answer. */
  readonly rate_limit?: RateLimit;
  /** `Host` names to answer to besides the machine's own. */
  readonly allowed_hosts?: readonly string[];
  /** Origins of web pages that may call this server, such as `https://app.example`. */
  readonly allowed_origins?: readonly string[];
  /** Refuses every write with 403; default false. */
  readonly read_only?: boolean;
  /** The largest request body in bytes; default 1,048,576. */
  readonly max_body_bytes?: number;
}

/**
 * The configuration of a project: the default export of `kit.config.ts`, or the tables of `kit.toml`.
 *
 * Everything is optional. Globs are relative to the project root.
 */
export interface KitConfig extends ProjectConfig {
  readonly agent?: AgentConfig;
  readonly sandbox?: SandboxConfig;
  readonly compaction?: CompactionConfig;
  readonly mcp?: McpConfig;
  readonly providers?: ProviderConfigs;
  readonly server?: ServerConfig;
  readonly store?: StoreConfig;
  readonly sessions?: SessionsConfig;
  readonly engine?: EngineConfig;
  readonly telemetry?: TelemetryConfig;
}

/** Gives `kit.config.ts` its types: `export default defineConfig({ … })`. Returns what it is given. */
export function defineConfig(config: KitConfig): KitConfig {
  return config;
}
