import * as z from "zod/mini";
import { type AgentHooks, faultOfHooks } from "../../agents/define/hooks.ts";
import { type BackendChoice, isBackend } from "../../backends/contract.ts";
import { suggest } from "../../base/error-text.ts";
import {
  amount,
  checkSettings,
  dictionary,
  expecting,
  flag,
  integer,
  list,
  live,
  longText,
  name,
  nameOr,
  oneOrMore,
  table,
  tableWith,
  text,
  textLike,
  withJsonSchema,
} from "../../base/settings.ts";
import { mcpTable } from "../../mcp/servers/mcp-config.ts";
import { providerTable } from "../../models/provider-config.ts";
import { isPostgresUrl, type PostgresUrl, postgresUrlPattern } from "../../postgres/is-postgres-url.ts";
import { guidelinesTable, lintTable, specsTable } from "../../project/project-config.ts";
import { backendNames, thinkingLevels } from "../../protocol/enums.ts";
import type { ErrorIssue } from "../../protocol/errors.ts";
import type { Infer } from "../../protocol/fields.ts";
import type { SessionStore } from "../../stores/contract.ts";
import {
  networkHost,
  sandboxChoice,
  sandboxIssues,
  sandboxKeywords,
  sandboxTable,
} from "./sandbox-schema.ts";
import { serverTable } from "./server-schema.ts";

/** The `agent.approvals` table. */
const approvalsTable = tableWith(
  {
    /** Names of tools and commands; `*` matches any characters: `["bash", "mcp__github__*"]`. */
    tools: list(text),
  },
  {
    /** Seconds until kit denies a call without a decision; default: the call waits without a limit. */
    timeout_seconds: integer(1, 31_536_000),
    /**
     * Calls that run without the approval that `tools` requires; `kit approvals allow` writes them. Approvals that an agent
     * or a tool itself requires are not affected.
     */
    allow: list(
      tableWith(
        { tool: text },
        {
          /** Default: every agent. */
          agent: text,
          /** For `bash`, in the syntax of `allowed_commands`. */
          command: text,
          /** For file tools: a file, or, with a trailing `/`, a folder and everything below it. */
          path: text,
          /** The arguments as JSON. */
          args: textLike("JSON", /\S/, isJson),
          /** With `command` or `args`: the working folder below the workspace; default: its root. */
          cwd: text,
        },
      ),
    ),
  },
);
export interface ApprovalsConfig extends Infer<typeof approvalsTable> {}

/** The `agent` table: defaults for the profile of every agent of the project. */
const agentTable = table({
  /**
   * `provider/model`, or a list: if a model fails permanently, the next one is tried. Default: a model of the first
   * provider with a key, else offline/guide.
   */
  model: oneOrMore(text),
  /** The backend that runs the turns; default `typed`: kit's own loop. `kit.config.ts` also accepts your own backend. */
  backend: z.union([z.enum(backendNames), live<Exclude<BackendChoice, string>>("a backend", isBackend)], {
    error: nameOr(backendNames, "a backend"),
  }),
  instructions: longText,
  thinking_level: name(thinkingLevels),
  /** The sandbox of agents that name none; default: virtual, and for `kit run` the project itself. */
  sandbox: sandboxChoice,
  /** Working folder inside the sandbox. */
  cwd: text,
  allow_write: flag,
  allow_shell: flag,
  /** Commands that may run: `["git", "npm test", { command = "make", unsafe = true }]`. */
  allowed_commands: list(z.union([text, tableWith({ command: text }, { unsafe: flag })])),
  allow_compound_commands: flag,
  allow_protected_paths: list(text),
  /** Hosts that commands may reach: `["registry.npmjs.org", "*.example.com:443"]`; default: none. */
  allow_network: list(networkHost),
  /** Calls of every agent that wait for an approval decision. */
  approvals: approvalsTable,
  /** Default 8. */
  max_task_depth: integer(0, 64),
  /** Default 3. */
  typed_retries: integer(0, 20),
  /** Seconds without any part of an answer before a model call times out; default 120. */
  model_idle_seconds: integer(1, 86_400),
  /** Maximum of model calls per operation; default 100. */
  max_turns: integer(1, 100_000),
  /** Maximum of tokens per operation. */
  max_tokens: integer(1, 1_000_000_000),
  /** Maximum of US dollars per operation. */
  max_cost: amount,
  /** Maximum of queued inputs per session; default 100. */
  max_waiting: integer(1, 100_000),
  /** Maximum of idle instances in memory; default 1,000. */
  max_idle_instances: integer(0, 1_000_000),
  /** Seconds for which an idle instance stays in memory; default 300. */
  idle_seconds: integer(1, 86_400),
  specs: flag,
  guidelines: flag,
  project_instructions: flag,
  /** Hooks around model and tool calls of every agent; they run before the agent's own hooks. */
  hooks: live<AgentHooks | readonly AgentHooks[]>(
    (value) => {
      const fault = faultOfHooks(value);
      const field = fault?.startsWith("`") ? `: ${fault}` : "";
      return `hooks such as { beforeTool: (call) => … } (only in kit.config.ts)${field}`;
    },
    (value) => faultOfHooks(value) === undefined,
  ),
});
export interface AgentConfig extends Infer<typeof agentTable> {}

/** The `compaction` table. */
const compactionTable = table({
  enabled: flag,
  context_window_tokens: integer(1_000, 100_000_000),
  reserve_tokens: integer(0, 10_000_000),
  keep_recent_tokens: integer(0, 10_000_000),
  model: text,
});
export interface CompactionConfig extends Infer<typeof compactionTable> {}

function postgresUrl(purpose: string) {
  return textLike<string>(purpose, postgresUrlPattern, isPostgresUrl);
}

/** Names no text: an address can have a password. */
function storeError(issue: { readonly input?: unknown }): string {
  const near = typeof issue.input === "string" ? suggest(issue.input, ["sqlite", "memory"]) : undefined;
  const expected = expecting("sqlite, memory, a postgres:// address or (only in kit.config.ts) a store")(
    issue,
  );
  return near === undefined ? expected : `${expected}; did you mean ${near}?`;
}

/**
 * The store of session histories: `sqlite` (default, in `.kit/sessions.db`), `memory`, the address of a
 * Postgres database (`postgres://…`), or, in `kit.config.ts`, a store.
 */
const storeChoice = z.union(
  [
    z.enum(["sqlite", "memory"]),
    textLike<PostgresUrl>("a postgres:// address", postgresUrlPattern, isPostgresUrl),
    live<SessionStore>("a store", isStore),
  ],
  { error: storeError },
);
export type StoreConfig = z.output<typeof storeChoice>;

/** The `sessions` table: how long kit keeps sessions. */
const sessionsTable = table({
  /**
   * Days without use after which kit removes a session and its workspace; default: never. Does not apply to agents with
   * their own store.
   */
  retention_days: integer(1, 3_650),
});
export interface SessionsConfig extends Infer<typeof sessionsTable> {}

/** The `engine.restate` table, for `kind = "restate"`. Several addresses are separated by commas. */
const restateTable = table({
  /** Addresses of the ingress; default: the variable `KIT_RESTATE_INGRESS`, else `http://127.0.0.1:8080`. */
  ingress: text,
  /** Addresses of the admin API; default: the variable `KIT_RESTATE_ADMIN`, else `http://127.0.0.1:9070`. */
  admin: text,
  /** `host:port` where this node serves Restate; default: the variable `KIT_RESTATE_LISTEN`, else `127.0.0.1:9080`. */
  listen: text,
  /** The address at which Restate reaches the nodes; default: the variable `KIT_RESTATE_ADDRESS`, else where this node listens. */
  address: text,
  /** Public keys of Restate; default: the variable `KIT_RESTATE_IDENTITY_KEY`. Required if other machines can reach `listen`. */
  identity_key: text,
  /** The name of kit's object in Restate; default: the schema. */
  service: text,
});

/** The `engine` table: how accepted work is stored and executed. */
const engineTable = table({
  /** Default `embedded`: SQLite in a folder of this machine. `postgres`: a database that several machines share; `restate`: the same, and Restate calls the machines. */
  kind: name(["embedded", "postgres", "restate"]),
  /** For `embedded`. Relative to the root; default `.kit/engine`. */
  folder: text,
  /** For `postgres`: the address of the database; default: the variable `KIT_ENGINE_URL`, else `DATABASE_URL`. */
  url: postgresUrl("a postgres:// address"),
  /** For `postgres` behind a pooler: the address without it, for locks and notifications; default: the variable `KIT_ENGINE_DIRECT_URL`, else `url`. */
  direct_url: postgresUrl("a postgres:// address"),
  /** For `postgres`: the schema of kit's tables; default `kit`. */
  schema: text,
  /** For `postgres`: the address at which other machines reach this one, `http://10.0.0.7:2024`; default: where its server listens. */
  address: textLike(
    "an http:// address without a query",
    /^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^/?#@\s]+(?:\/[^?#\s]*)?$/,
    isNodeAddress,
  ),
  restate: restateTable,
  /** Maximum of inputs and runs executed at the same time; default 256. */
  concurrency: integer(1, 100_000),
  /** Maximum of queued inputs in total; default 10,000. */
  max_waiting: integer(1, 10_000_000),
  /** Maximum of queued inputs, and of queued runs, per principal; default: as many as there are places left for others. */
  max_waiting_per_principal: integer(1, 10_000_000),
  /** Attempts at an input before it is a dead letter; default 5. */
  max_attempts: integer(1, 1_000),
  /** Days for which kit keeps ended work; default 7. */
  retention_days: integer(1, 3_650),
  /** Maximum bytes of the events of instances and runs on disk; default 1 GiB. Beyond it, kit removes the oldest events. */
  max_event_bytes: integer(1_048_576, 1_099_511_627_776),
});
export interface EngineConfig extends Infer<typeof engineTable> {}

/** The `engine` table, or only the address of the database for `kind = "postgres"`. */
const engineChoice = z.union([postgresUrl("a postgres:// address or a table"), engineTable], {
  error: expecting("a postgres:// address or a table"),
});

/** The `build` table: the output of `kit build`. */
const buildTable = table({
  /** Files that the code reads at run time, in addition to those that kit finds itself. */
  include: list(text),
  /** For `vercel` and `netlify`: the time limit of one call in seconds; default 300 and 60. */
  max_seconds: integer(20, 900),
});

/** The `telemetry` table: the content of spans. */
const telemetryTable = table({
  /** Records the prompts and answers of models, and the arguments and results of tools; default false. */
  capture_content: flag,
  /** Adds attributes with OpenInference names to those of OpenTelemetry, for Phoenix before 15.10 and Arize; default false. */
  open_inference: flag,
  /** Sets `TRACEPARENT` and `TRACESTATE` in the environment of agents' commands; default false. */
  trace_commands: flag,
});
export interface TelemetryConfig extends Infer<typeof telemetryTable> {}

/**
 * The configuration of a project: the default export of `kit.config.ts`, or the tables of `kit.toml`.
 *
 * Everything is optional. Globs are relative to the project root.
 */
export const configSchema = withJsonSchema(
  table({
    specs: specsTable,
    guidelines: guidelinesTable,
    lint: lintTable,
    agent: agentTable,
    sandbox: sandboxTable,
    compaction: compactionTable,
    mcp: mcpTable,
    /** The keys are names. */
    providers: dictionary(providerTable),
    server: serverTable,
    /**
     * The store of session histories: `sqlite` (default, in `.kit/sessions.db`), `memory`, the address of a
     * Postgres database (`postgres://…`), or, in `kit.config.ts`, a store.
     */
    store: storeChoice,
    sessions: sessionsTable,
    /** A table, or the address of a Postgres database that several machines share: `postgres://…`. */
    engine: engineChoice,
    telemetry: telemetryTable,
    build: buildTable,
  }),
  sandboxKeywords,
);
export interface KitConfig extends Infer<typeof configSchema> {}

/** The loaded configuration of a project: `engine` is always a table, also if the project sets only an address. */
export interface LoadedKitConfig extends Omit<KitConfig, "engine"> {
  readonly engine?: EngineConfig | undefined;
}

const storeMethods = [
  "append",
  "read",
  "info",
  "list",
  "delete",
  "close",
] as const satisfies readonly (keyof SessionStore)[];

function isJson(value: string): boolean {
  try {
    JSON.parse(value);
    return true;
  } catch {
    return false;
  }
}

/** A base address, to which calls add their paths. */
function isNodeAddress(text: string): boolean {
  const url = URL.parse(text);
  return (
    /^https?:$/.test(url?.protocol ?? "") && url?.search === "" && url.hash === "" && url.username === ""
  );
}

function isStore(value: unknown): value is SessionStore {
  if (typeof value !== "object" || value === null) return false;
  const store: Partial<Record<keyof SessionStore, unknown>> = value;
  return storeMethods.every((method) => typeof store[method] === "function");
}

/**
 * Checks a loaded configuration. `issues[].path` names the key (`server.port`); with any issue, `config` is
 * undefined.
 */
export function parseConfig(value: unknown): {
  readonly config?: KitConfig;
  readonly issues: readonly ErrorIssue[];
} {
  const { value: config, issues } = checkSettings(configSchema, value);
  if (config === undefined)
    return { issues: issues.map(({ path, message }) => ({ path: path || "the configuration", message })) };
  const wrong = sandboxIssues(config);
  return wrong.length > 0 ? { issues: wrong } : { config, issues: [] };
}
