import type { SecretMask } from "../../agents/secrets.ts";
import { defined } from "../../base/defined.ts";
import { virtual } from "../../sandboxes/virtual/virtual-sandbox.ts";
import { toProfile } from "../config/agent-config.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import { toIsolation, toSandboxFactory } from "../config/sandbox-config.ts";
import { maskOf } from "./known-secrets.ts";
import type { OpenAppOptions } from "./open-app.ts";

type FromConfig =
  | "isolation"
  | "env"
  | "defaults"
  | "sandbox"
  | "instances"
  | "maxWaiting"
  | "mcp"
  | "providers"
  | "store"
  | "tracesCommands";

/** What the configuration of the project at `root` says of its agents, for `openApp`. */
export function toAppOptions(
  loaded: Pick<LoadedConfig, "config" | "environment" | "fileSecrets">,
  root: string,
): Pick<OpenAppOptions, FromConfig> & { readonly mask: SecretMask } {
  const { config, environment } = loaded;
  const { agent = {}, compaction, mcp, providers, store, telemetry = {} } = config;
  return {
    env: environment,
    mask: maskOf(loaded),
    defaults: toProfile(agent, compaction),
    sandbox: toSandboxFactory(config, { root, environment }) ?? virtual({ root }),
    isolation: toIsolation(config.sandbox),
    instances: defined({ maxIdle: agent.max_idle_instances }),
    tracesCommands: telemetry.trace_commands ?? false,
    ...defined({ maxWaiting: agent.max_waiting, mcp, providers, store }),
  };
}
