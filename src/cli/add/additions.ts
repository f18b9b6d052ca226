import { suggest } from "../../base/error-text.ts";
import { defaultModels } from "../../models/create-model-resolver.ts";
import { type KnownProvider, knownProviders } from "../../models/provider-config.ts";
import { usageError } from "../report-error.ts";

/** An entry of `kit add`: the packages to install, and the configuration that makes kit use them. */
export interface Addition {
  readonly name: string;
  readonly kind: "model" | "store" | "sandbox" | "backend" | "telemetry" | "tools";
  /** Each is a peer dependency in kit's package.json, which has the versions. */
  readonly packages: readonly string[];
  /** Keys as kit.toml writes them, dotted. Never a secret: secrets go into variables. */
  readonly configuration?: Readonly<Record<string, string>>;
  /** Variables, one of which must be set. */
  readonly variables?: readonly string[];
  /** Whether all of `variables` must be set. */
  readonly needsAllVariables?: boolean;
  /** A file in the home folder that may hold the key instead; the vendor's own tool writes it. */
  readonly keyFile?: string;
  /** An example of the variable's value, where its name does not show the form. */
  readonly variableExample?: string;
  /** The steps that the user has to do. */
  readonly remark?: string;
  /** Other names that users write for it. */
  readonly aliases?: readonly string[];
  /** The page of kit's documentation. */
  readonly docs: string;
}

const aliasesOfProviders: Readonly<Partial<Record<KnownProvider, readonly string[]>>> = {
  anthropic: ["claude"],
  openai: ["gpt"],
  google: ["gemini"],
};

const models = Object.entries(knownProviders).map(([name, provider]): Addition => {
  const model = Object.hasOwn(defaultModels, name) ? defaultModels[name] : undefined;
  return {
    name,
    kind: "model",
    packages: [provider.package],
    variables: provider.keys,
    docs: "docs/configuration.md#providers",
    aliases: aliasesOfProviders[name as KnownProvider] ?? [],
    ...(model === undefined
      ? { remark: `Name a model that you have: agent.model = "${name}/<model>", or KIT_MODEL.` }
      : { configuration: { "agent.model": `${name}/${model}` } }),
  };
});

/** All entries of `kit add`. A new peer of kit needs a row here and its place in package.json. */
export const additions: readonly Addition[] = [
  ...models,
  {
    name: "postgres",
    kind: "store",
    packages: ["pg"],
    // The address holds a password, so it is not a key for a file.
    variables: ["KIT_STORE"],
    variableExample: "postgres://user:password@host:5432/database",
    aliases: ["pg", "postgresql"],
    docs: "docs/stores.md#postgres",
  },
  {
    name: "e2b",
    kind: "sandbox",
    packages: ["e2b"],
    configuration: { "agent.sandbox": "e2b" },
    variables: ["E2B_API_KEY"],
    docs: "docs/remote-sandboxes.md",
  },
  {
    name: "daytona",
    kind: "sandbox",
    packages: ["@daytona/sdk"],
    configuration: { "agent.sandbox": "daytona" },
    variables: ["DAYTONA_API_KEY"],
    docs: "docs/remote-sandboxes.md",
  },
  {
    name: "modal",
    kind: "sandbox",
    packages: ["modal"],
    configuration: { "agent.sandbox": "modal" },
    variables: ["MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET"],
    needsAllVariables: true,
    keyFile: ".modal.toml",
    docs: "docs/remote-sandboxes.md",
  },
  {
    name: "runloop",
    kind: "sandbox",
    packages: ["@runloop/api-client"],
    configuration: { "agent.sandbox": "runloop" },
    variables: ["RUNLOOP_API_KEY"],
    docs: "docs/remote-sandboxes.md",
  },
  {
    name: "graph",
    kind: "backend",
    packages: ["@langchain/langgraph", "@langchain/core"],
    configuration: { "agent.backend": "graph" },
    aliases: ["langgraph"],
    docs: "docs/backends.md",
  },
  {
    name: "openai_agents",
    kind: "backend",
    packages: ["@openai/agents"],
    configuration: { "agent.backend": "openai_agents" },
    aliases: ["openai-agents", "agents-sdk"],
    docs: "docs/backends.md",
  },
  {
    name: "google_adk",
    kind: "backend",
    packages: ["@google/adk"],
    configuration: { "agent.backend": "google_adk" },
    aliases: ["google-adk", "adk"],
    docs: "docs/backends.md",
  },
  {
    name: "otel",
    kind: "telemetry",
    packages: [
      "@opentelemetry/api",
      "@opentelemetry/context-async-hooks",
      "@opentelemetry/exporter-metrics-otlp-http",
      "@opentelemetry/exporter-trace-otlp-http",
      "@opentelemetry/resources",
      "@opentelemetry/sdk-metrics",
      "@opentelemetry/sdk-trace",
    ],
    variables: ["OTEL_EXPORTER_OTLP_ENDPOINT"],
    variableExample: "http://localhost:4318",
    remark: "kit start --otel sends traces and metrics; with the variable set, kit start alone does.",
    aliases: ["opentelemetry", "telemetry"],
    docs: "docs/telemetry.md",
  },
  {
    name: "mcp",
    kind: "tools",
    packages: ["@modelcontextprotocol/client"],
    remark: "Name the servers whose tools agents get under mcp.servers.",
    docs: "docs/mcp-client.md",
  },
  {
    name: "python",
    kind: "tools",
    packages: ["@pydantic/monty"],
    aliases: ["monty"],
    docs: "docs/python.md",
  },
];

/**
 * The addition with this name or alias. Throws `invalid_request` for a name that is not in the table: kit installs
 * nothing else.
 */
export function findAddition(text: string): Addition {
  const lowered = text.toLowerCase();
  const addition = additions.find(
    ({ name, aliases = [], packages, kind }) =>
      name === lowered || aliases.includes(lowered) || (kind !== "model" && packages.includes(lowered)),
  );
  if (addition !== undefined) return addition;
  const names = additions.map(({ name }) => name);
  const other = suggest(text, [...names, ...additions.flatMap(({ aliases = [] }) => aliases)]);
  const suggestion = other === undefined ? "" : `Did you mean ${other}? `;
  throw usageError(`kit add does not know '${text}'.`, `${suggestion}It is one of ${names.join(", ")}.`);
}
