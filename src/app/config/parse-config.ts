import type { AllowedCommand } from "../../agents/define/agent-profile.ts";
import { type BackendChoice, isBackend } from "../../backends/contract.ts";
import { sourceTypeOf } from "../../guidelines/convert/source-aliases.ts";
import type { ProviderConfig } from "../../models/provider-config.ts";
import type { ProviderLimits } from "../../models/provider-limiter.ts";
import type { ProjectConfig } from "../../project/project.ts";
import type { AuthorizeHook, RateLimit } from "../../protocol/access.ts";
import {
  type BackendName,
  backendNames,
  frameworks,
  specTypes,
  type ThinkingLevel,
  thinkingLevels,
} from "../../protocol/enums.ts";
import type { ErrorIssue } from "../../protocol/errors.ts";
import { type SyncFormat, syncFormats } from "../../protocol/sync.ts";
import type { ModelPrice } from "../../protocol/usage.ts";
import type { IsolationMode, SandboxFactory } from "../../sandboxes/contract.ts";
import { hostPatternForm, parseHostPattern } from "../../sandboxes/host/wall/host-pattern.ts";
import { runloopSizes } from "../../sandboxes/runloop/runloop-options.ts";
import type { SpecAdapter } from "../../specs/adapter.ts";
import type { SessionStore } from "../../stores/contract.ts";
import { isPostgresUrl } from "../../stores/postgres/is-postgres-url.ts";
import type { AgentConfig, ApprovalsConfig, CompactionConfig } from "./agent-config.ts";
import { type EngineConfig, engineKinds, type SessionsConfig } from "./engine-config.ts";
import {
  type Exposure,
  exposures,
  type KitConfig,
  type ServerConfig,
  type StoreConfig,
} from "./kit-config.ts";
import { readMcpConfig } from "./read-mcp-config.ts";
import {
  amount,
  dictionary,
  flag,
  guarded,
  integer,
  list,
  longText,
  name,
  oneOrMore,
  type Reader,
  type Report,
  table,
  text,
  variables,
} from "./readers.ts";
import {
  isolationModes,
  type LimitsConfig,
  type SandboxChoice,
  type SandboxConfig,
  type SandboxKind,
  type SandboxOptions,
  sandboxIssues,
  sandboxKinds,
} from "./sandbox-config.ts";
import type { TelemetryConfig } from "./telemetry-config.ts";

type SpecsConfig = NonNullable<ProjectConfig["specs"]>;
type GuidelinesConfig = NonNullable<ProjectConfig["guidelines"]>;
type CustomSource = NonNullable<SpecsConfig["custom"]>[number];

const syncFormat = name<SyncFormat>(syncFormats, (written) => {
  const type = sourceTypeOf(written);
  return syncFormats.find((known) => known === type);
});

const unsafeCommand: Reader<Exclude<AllowedCommand, string>> = table(
  { command: text, unsafe: flag },
  { required: ["command"] },
);
const allowedCommand: Reader<AllowedCommand> = (value, path, report) =>
  (typeof value === "object" ? unsafeCommand : text)(value, path, report);

const sandboxKind = name<SandboxKind>(sandboxKinds);
const sandboxFactory = guarded(
  `${sandboxKinds.join(", ")} or (only in kit.config.ts) a sandbox`,
  isSandboxFactory,
);
const networkHost = guarded(hostPatternForm, isNetworkHost);
const flagOrText: Reader<boolean | string> = (value, path, report) =>
  typeof value === "boolean" ? value : text(value, path, report);
const hostsOrAny: Reader<readonly string[] | "any"> = (value, path, report) =>
  value === "any" ? value : list(networkHost)(value, path, report);
const sandboxChoice: Reader<SandboxChoice> = (value, path, report) =>
  (typeof value === "string" ? sandboxKind : sandboxFactory)(value, path, report);

const backendChoice: Reader<BackendChoice> = (value, path, report) =>
  typeof value === "string"
    ? name<BackendName>(backendNames)(value, path, report)
    : guarded(`${backendNames.join(", ")} or (only in kit.config.ts) a backend`, isBackend)(
        value,
        path,
        report,
      );

const readConfig: Reader<KitConfig> = table<KitConfig>({
  specs: table<SpecsConfig>({
    include: list(text),
    exclude: list(text),
    custom: list(
      table<CustomSource>(
        { include: text, spec_type: name<string>(specTypes), tags: list(text) },
        { required: ["include"] },
      ),
    ),
    adapters: list(
      guarded("an adapter with name, framework, matches and parse (only in kit.config.ts)", isSpecAdapter),
    ),
  }),
  guidelines: table<GuidelinesConfig>({
    include: list(text),
    exclude: list(text),
    source: syncFormat,
    targets: list(syncFormat),
  }),
  agent: table<AgentConfig>({
    model: oneOrMore(text),
    backend: backendChoice,
    instructions: longText,
    thinking_level: name<ThinkingLevel>(thinkingLevels),
    sandbox: sandboxChoice,
    cwd: text,
    allow_write: flag,
    allow_shell: flag,
    allowed_commands: list(allowedCommand),
    allow_compound_commands: flag,
    allow_protected_paths: list(text),
    allow_network: list(networkHost),
    approvals: table<ApprovalsConfig>(
      { tools: list(text), timeout_seconds: integer(1, 31_536_000) },
      { required: ["tools"] },
    ),
    max_task_depth: integer(0, 64),
    typed_retries: integer(0, 20),
    model_idle_seconds: integer(1, 86_400),
    max_turns: integer(1, 100_000),
    max_tokens: integer(1, 1_000_000_000),
    max_cost: amount,
    max_waiting: integer(1, 100_000),
    max_idle_instances: integer(0, 1_000_000),
    idle_seconds: integer(1, 86_400),
    specs: flag,
    guidelines: flag,
    project_instructions: flag,
  }),
  sandbox: table<SandboxConfig>({
    isolation: name<IsolationMode>(isolationModes),
    limits: table<LimitsConfig>({
      processes: integer(1, 1_000_000),
      memory_mb: integer(16, 16_777_216),
    }),
    options: table<SandboxOptions>({
      root: text,
      folder: text,
      files: dictionary(longText),
      env: variables,
      upload: flagOrText,
      network: hostsOrAny,
      idle_seconds: integer(10, 86_400),
      project: guarded("1 to 63 letters, digits, dots and dashes", isProjectName),
      template: text,
      domain: text,
      snapshot: text,
      image: text,
      target: text,
      blueprint: text,
      size: name<NonNullable<SandboxOptions["size"]>>(runloopSizes),
      app: text,
      environment: text,
      api_url: text,
      sandbox_url: text,
    }),
  }),
  compaction: table<CompactionConfig>({
    enabled: flag,
    context_window_tokens: integer(1_000, 100_000_000),
    reserve_tokens: integer(0, 10_000_000),
    keep_recent_tokens: integer(0, 10_000_000),
    model: text,
  }),
  mcp: readMcpConfig,
  providers: dictionary(
    table<ProviderConfig>({
      base_url: guarded("an address such as http://127.0.0.1:8080/v1", isAddress),
      api_key: text,
      headers: dictionary(text),
      structured_output: flag,
      prompt_cache: flag,
      limits: table<ProviderLimits>({
        requests_per_minute: integer(1, 1_000_000_000),
        tokens_per_minute: integer(1, 1_000_000_000_000),
      }),
      prices: dictionary(
        table<ModelPrice>(
          { input: amount, output: amount, cache_read: amount, cache_write: amount },
          { required: ["input", "output"] },
        ),
      ),
      context_windows: dictionary(integer(1_000, 100_000_000)),
    }),
  ),
  server: table<ServerConfig>({
    host: text,
    port: integer(0, 65_535),
    expose: name<Exposure>(exposures),
    api_keys: list(text),
    auth: guarded("a function (only in kit.config.ts)", isFunction<NonNullable<ServerConfig["auth"]>>),
    authorize: guarded("a function (only in kit.config.ts)", isFunction<AuthorizeHook>),
    rate_limit: table<RateLimit>(
      {
        requests: integer(1, 1_000_000_000),
        per_seconds: integer(1, 86_400),
        burst: integer(1, 1_000_000_000),
      },
      { required: ["requests"] },
    ),
    allowed_hosts: list(text),
    allowed_origins: list(text),
    read_only: flag,
    max_body_bytes: integer(1, 1_073_741_824),
  }),
  store: guarded("sqlite, memory, a postgres:// address or (only in kit.config.ts) a store", isStoreConfig),
  sessions: table<SessionsConfig>({ retention_days: integer(1, 3_650) }),
  engine: table<EngineConfig>({
    kind: name<"embedded">(engineKinds),
    folder: text,
    concurrency: integer(1, 100_000),
    max_waiting: integer(1, 10_000_000),
    max_waiting_per_principal: integer(1, 10_000_000),
    max_attempts: integer(1, 1_000),
    retention_days: integer(1, 3_650),
    max_event_bytes: integer(1_048_576, 1_099_511_627_776),
  }),
  telemetry: table<TelemetryConfig>({ capture_content: flag, open_inference: flag, trace_commands: flag }),
});

/**
 * Checks a configuration as it was loaded. A key is `issues[].path` (`server.port`); with any issue
 * there is no configuration.
 */
export function parseConfig(value: unknown): {
  readonly config?: KitConfig;
  readonly issues: readonly ErrorIssue[];
} {
  const report: Report = { issues: [] };
  const config = readConfig(value, "", report);
  if (config !== undefined && report.issues.length === 0) report.issues.push(...sandboxIssues(config));
  return config === undefined || report.issues.length > 0
    ? { issues: report.issues }
    : { config, issues: [] };
}

function isNetworkHost(value: unknown): value is string {
  return typeof value === "string" && parseHostPattern(value) !== undefined;
}

function isFunction<Hook extends (...args: never[]) => unknown>(value: unknown): value is Hook {
  return typeof value === "function";
}

function isAddress(value: unknown): value is string {
  return typeof value === "string" && /^https?:\/\//i.test(value) && URL.canParse(value);
}

function isSpecAdapter(value: unknown): value is SpecAdapter {
  if (typeof value !== "object" || value === null) return false;
  const adapter: Partial<Record<keyof SpecAdapter, unknown>> = value;
  return (
    typeof adapter.name === "string" &&
    frameworks.some((framework) => framework === adapter.framework) &&
    typeof adapter.matches === "function" &&
    typeof adapter.parse === "function"
  );
}

function isProjectName(value: unknown): value is string {
  return typeof value === "string" && /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(value);
}

function isSandboxFactory(value: unknown): value is SandboxFactory {
  if (typeof value !== "object" || value === null) return false;
  const factory: Partial<Record<keyof SandboxFactory, unknown>> = value;
  return typeof factory.name === "string" && typeof factory.open === "function";
}

const storeMethods = [
  "append",
  "read",
  "info",
  "list",
  "delete",
  "close",
] as const satisfies readonly (keyof SessionStore)[];

function isStoreConfig(value: unknown): value is StoreConfig {
  if (typeof value === "string") return value === "sqlite" || value === "memory" || isPostgresUrl(value);
  if (typeof value !== "object" || value === null) return false;
  const store: Partial<Record<keyof SessionStore, unknown>> = value;
  return storeMethods.every((method) => typeof store[method] === "function");
}
