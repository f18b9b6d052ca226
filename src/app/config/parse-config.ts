import { checkSettings } from "../../base/settings.ts";
import type { ErrorIssue } from "../../protocol/errors.ts";
import { configSchema, type KitConfig } from "./config-schema.ts";
import { sandboxIssues } from "./sandbox-config.ts";

/**
 * Checks a configuration as it was loaded. A key is `issues[].path` (`server.port`); with any issue
 * there is no configuration.
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
