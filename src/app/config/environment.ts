import { suggest } from "../../base/error-text.ts";
import type { ErrorIssue } from "../../protocol/errors.ts";
import type { EngineConfig, KitConfig } from "./config-schema.ts";
import { toEngineTable } from "./engine-config.ts";

/** Variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

type Conversion = (written: string) => unknown;

const asIs: Conversion = (written) => written;
const toList: Conversion = (written) => written.split(/[\s,]+/).filter((word) => word !== "");
const oneOrMore: Conversion = (written) => (written.includes(",") ? toList(written) : written);
const wholeNumber: Conversion = (written) => (/^\d{1,15}$/.test(written) ? Number(written) : written);
const booleans = new Map([
  ["1", true],
  ["true", true],
  ["yes", true],
  ["on", true],
  ["0", false],
  ["false", false],
  ["no", false],
  ["off", false],
]);
const yesOrNo: Conversion = (written) => booleans.get(written.toLowerCase()) ?? written;

/** The variable, the configuration key, and the conversion of the text to a value. */
const variables: readonly (readonly [string, string, Conversion])[] = [
  ["KIT_MODEL", "agent.model", oneOrMore],
  ["KIT_HOST", "server.host", asIs],
  ["KIT_PORT", "server.port", wholeNumber],
  ["KIT_PUBLIC_URL", "server.public_url", asIs],
  ["KIT_EXPOSE", "server.expose", asIs],
  ["KIT_API_KEYS", "server.api_keys", toList],
  ["KIT_ALLOWED_HOSTS", "server.allowed_hosts", toList],
  ["KIT_ALLOWED_ORIGINS", "server.allowed_origins", toList],
  ["KIT_READ_ONLY", "server.read_only", yesOrNo],
  ["KIT_CONSOLE", "server.console", yesOrNo],
  ["KIT_MAX_BODY_BYTES", "server.max_body_bytes", wholeNumber],
  ["KIT_MAX_STREAM_SECONDS", "server.max_stream_seconds", wholeNumber],
  ["KIT_DRAIN_SECONDS", "server.drain_seconds", wholeNumber],
  ["KIT_STORE", "store", asIs],
  ["KIT_NODE_ADDRESS", "engine.address", asIs],
];

/** Variables without a configuration key: the server and key for commands, and the recording of telemetry. */
const otherNames: readonly string[] = [
  "KIT_ENGINE_DIRECT_URL",
  "KIT_ENGINE_URL",
  "KIT_RESTATE_ADDRESS",
  "KIT_RESTATE_ADMIN",
  "KIT_RESTATE_IDENTITY_KEY",
  "KIT_RESTATE_INGRESS",
  "KIT_RESTATE_LISTEN",
  "KIT_RESTATE_TOKEN",
  "KIT_API_KEY",
  "KIT_URL",
  "KIT_DEBUG",
  "KIT_RECORD",
  "KIT_TRUST",
];

/**
 * Reads the part of the configuration that environment variables set. Empty variables count as unset; lists
 * are separated by commas or white space.
 */
export async function parseEnvironment(environment: Environment): Promise<{
  readonly config: Pick<KitConfig, "agent" | "server" | "store"> & { readonly engine?: EngineConfig };
  readonly issues: readonly ErrorIssue[];
  /** Sentences about variables that look like misspelled names. */
  readonly warnings: readonly string[];
}> {
  const values: Record<string, unknown> = {};
  const tables = new Map<string, Record<string, unknown>>();
  const variableOf = new Map<string, string>();
  for (const [variable, path, convert] of variables) {
    const written = environment[variable]?.trim();
    if (written === undefined || written === "") continue;
    variableOf.set(path, variable);
    const [name = path, key] = path.split(".");
    if (key === undefined) {
      values[name] = convert(written);
      continue;
    }
    const table = tables.get(name) ?? {};
    table[key] = convert(written);
    tables.set(name, table);
  }
  const warnings = misspelled(environment);
  if (variableOf.size === 0) return { config: {}, issues: [], warnings };
  const { parseConfig } = await import("./config-schema.ts");
  const { config: { engine, ...config } = {}, issues } = parseConfig({
    ...values,
    ...Object.fromEntries(tables),
  });
  return {
    config: { ...config, ...(engine === undefined ? {} : { engine: toEngineTable(engine) }) },
    issues: issues.map(({ path, message }) => ({ path: variableOf.get(path) ?? path, message })),
    warnings,
  };
}

// A misspelled KIT_API_KEYS would leave a server open without a warning.
function misspelled(environment: Environment): readonly string[] {
  const names = variables.map(([variable]) => variable);
  return Object.keys(environment).flatMap((variable) => {
    if (!variable.startsWith("KIT_") || names.includes(variable) || otherNames.includes(variable)) return [];
    const near = suggest(
      variable.slice("KIT_".length),
      names.map((known) => known.slice("KIT_".length)),
    );
    return near === undefined ? [] : [`${variable} is not a variable of kit; did you mean KIT_${near}?`];
  });
}
