import { isRecord } from "../../base/record.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import { addressesIn, addressName, plain } from "./key-targets.ts";
import { readTrust } from "./trust.ts";

/** Settings that start programs, give rights, or waive a question or the isolation. */
const grants = [
  "mcp",
  "sandbox.isolation",
  "agent.approvals.allow",
  "agent.allow_write",
  "agent.allow_shell",
  "agent.allow_network",
  "agent.allow_protected_paths",
] as const;
/** Values of these settings that forbid something. */
const forbidding: readonly unknown[] = [undefined, false, "required"];

/**
 * Returns a configuration in TOML as it holds in a folder that the person does not trust, and the names of what was left out: settings
 * that give rights, and addresses of providers and of a store that the person neither trusts nor has in the environment. It names no
 * file, so kit writes no rules into the file of a stranger.
 */
export function withoutGrants(
  loaded: LoadedConfig,
  root: string,
): { readonly loaded: LoadedConfig; readonly left: readonly string[] } {
  const own = addressesIn(process.env);
  const trusted = readTrust(root, process.env).targets;
  const isStrange = (address: string): boolean =>
    !own.includes(plain(address)) && !trusted.some((target) => target.endsWith(` ${plain(address)}`));
  const config = structuredClone(loaded.config);
  const left: string[] = [];
  const remove = (path: string): void => {
    const names = path.split(".");
    const key = names.pop() ?? "";
    const table = names.reduce<unknown>((outer, name) => isRecord(outer) && outer[name], config);
    if (!isRecord(table) || forbidding.includes(table[key])) return;
    Reflect.deleteProperty(table, key);
    left.push(path);
  };
  for (const path of grants) remove(path);
  const { store, providers = {} } = config;
  if (typeof store === "string" && store !== "memory" && store !== "sqlite" && isStrange(store))
    remove("store");
  const kept = Object.entries(providers).filter(([name, { base_url }]) => {
    if (base_url === undefined || !isStrange(base_url)) return true;
    left.push(`providers.${name}`);
    return false;
  });
  const environment = Object.entries(loaded.environment).filter(([name, value = ""]) => {
    if (process.env[name] !== undefined || !addressName.test(name.toUpperCase()) || !isStrange(value))
      return true;
    left.push(`${name} of ${loaded.envFile?.name}`);
    return false;
  });
  const { file: _, ...rest } = loaded;
  return {
    loaded: {
      ...rest,
      config: { ...config, providers: Object.fromEntries(kept) },
      environment: Object.fromEntries(environment),
    },
    left,
  };
}
