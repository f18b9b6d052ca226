import { sourceTypeOf } from "../../guidelines/source-aliases.ts";
import type { ProjectConfig } from "../../project/project.ts";
import type { ErrorIssue } from "../../protocol/error-code.ts";
import { frameworks, specTypes } from "../../protocol/spec-block.ts";
import { type SyncFormat, syncFormats } from "../../protocol/sync.ts";
import type { SpecAdapter } from "../../specs/adapter.ts";
import type { KitConfig, ServerConfig } from "./kit-config.ts";
import { flag, guarded, integer, list, name, type Reader, type Report, table, text } from "./readers.ts";

type SpecsConfig = NonNullable<ProjectConfig["specs"]>;
type GuidelinesConfig = NonNullable<ProjectConfig["guidelines"]>;
type CustomSource = NonNullable<SpecsConfig["custom"]>[number];

const among = <T extends string>(names: readonly T[]): ((written: string) => T | undefined) => {
  return (written) => names.find((known) => known === written);
};
const syncFormat = name<SyncFormat>(syncFormats, (written) =>
  among(syncFormats)(sourceTypeOf(written) ?? ""),
);

const readConfig: Reader<KitConfig> = table<KitConfig>(
  {
    specs: table<SpecsConfig>({
      include: list(text),
      exclude: list(text),
      custom: list(
        table<CustomSource>(
          { include: text, spec_type: name<string>(specTypes, among(specTypes)), tags: list(text) },
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
    server: table<ServerConfig>({
      host: text,
      port: integer(0, 65_535),
      api_keys: list(text),
      auth: guarded("a function (only in kit.config.ts)", isAuth),
      allowed_hosts: list(text),
      allowed_origins: list(text),
      read_only: flag,
      max_body_bytes: integer(1, 1_073_741_824),
    }),
  },
  { later: ["agent", "sandbox", "compaction", "mcp", "providers", "store", "engine"] },
);

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
  return config === undefined || report.issues.length > 0
    ? { issues: report.issues }
    : { config, issues: [] };
}

function isAuth(value: unknown): value is NonNullable<ServerConfig["auth"]> {
  return typeof value === "function";
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
