import { expect, test } from "vitest";
import type { LoadedKitConfig } from "../config/config-schema.ts";
import type { Environment } from "../config/environment.ts";
import { keyTargets } from "./key-targets.ts";

const evil = "https://evil.example/v1";

function targetsOf({
  own = {},
  dotEnv = {},
  config = {},
}: {
  readonly own?: Environment;
  readonly dotEnv?: Readonly<Record<string, string>>;
  readonly config?: LoadedKitConfig;
}): readonly string[] {
  const fromFiles = new Map(Object.entries(dotEnv).map(([name, value]) => [name, { value, file: ".env" }]));
  return keyTargets({ config, configName: "kit.toml", own, fromFiles }).map(
    ({ key = "-", address, source }) => `${key} > ${address} (${source})`,
  );
}

const byVariable: readonly (readonly [own: string, inFile: string])[] = [
  ["OPENAI_API_KEY", "OPENAI_BASE_URL"],
  ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"],
  ["GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"],
  ["E2B_API_KEY", "E2B_DOMAIN"],
  ["E2B_API_KEY", "E2B_API_URL"],
  ["DAYTONA_API_KEY", "DAYTONA_API_URL"],
  ["MODAL_TOKEN_SECRET", "MODAL_SERVER_URL"],
  ["MODAL_TOKEN_SECRET", "MODAL_CONFIG_PATH"],
  ["AWS_SECRET_ACCESS_KEY", "AWS_CONFIG_FILE"],
  ["RUNLOOP_API_KEY", "RUNLOOP_BASE_URL"],
  ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_ENDPOINT"],
  ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"],
  ["LANGSMITH_API_KEY", "LANGCHAIN_ENDPOINT"],
  ["AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"],
  ["GITHUB_TOKEN", "GH_HOST"],
  ["STRIPE_KEY", "STRIPE_API_BASE"],
  ["HF_TOKEN", "HF_ENDPOINT"],
  ["KIT_API_KEY", "KIT_URL"],
  ["KIT_RESTATE_TOKEN", "KIT_RESTATE_INGRESS"],
  ["PGPASSWORD", "PGHOST"],
];

for (const [key, variable] of byVariable) {
  test(`${key} of the environment needs trust for ${variable} of a file`, () => {
    const own = { [key]: "k" };
    const expected = [`${key} > ${evil} (${variable} in .env)`];
    expect(targetsOf({ own, dotEnv: { [variable]: evil } })).toEqual(expected);
    // Both from one place.
    expect(targetsOf({ dotEnv: { [variable]: evil, [key]: "k" } })).toEqual([]);
    expect(targetsOf({ own: { ...own, [variable]: evil } })).toEqual([]);
    // Keys of others.
    expect(targetsOf({ own: { OTHER_API_KEY: "k" }, dotEnv: { [variable]: evil } })).toEqual([]);
  });
}

test("a database without a password would get PGPASSWORD", () => {
  const own = { PGPASSWORD: "secret" };
  expect(targetsOf({ own, dotEnv: { DATABASE_URL: "postgres://me@evil.example/db" } })).toEqual([
    "PGPASSWORD > postgres://evil.example/db (DATABASE_URL in .env)",
  ]);
  expect(targetsOf({ own, config: { engine: { url: "postgres://me@evil.example/db" } } })).toEqual([
    "PGPASSWORD > postgres://evil.example/db (engine.url in kit.toml)",
  ]);
  expect(targetsOf({ own, config: { store: "postgres://me:pw@db.example/db" } })).toEqual([]);
});

test("variables that decide over all connections and programs need trust in any case", () => {
  const steering = {
    HTTPS_PROXY: "http://user:word@evil.example:1",
    all_proxy: "socks://evil.example",
    NODE_OPTIONS: "--require ./evil.cjs",
    NODE_EXTRA_CA_CERTS: "evil.pem",
    NODE_V8_COVERAGE: "/home/me",
    NODE_COMPILE_CACHE: "cache",
    NODE_REDIRECT_WARNINGS: "/home/me/.bashrc",
    PGPASSFILE: "pgpass",
    PGSERVICEFILE: "services",
    GOFLAGS: "-toolexec=./evil",
    MAKEFLAGS: "--eval=x",
    HOSTALIASES: "hosts",
    NODE_TLS_REJECT_UNAUTHORIZED: "0",
    LD_PRELOAD: "./evil.so",
    GIT_SSH_COMMAND: "./evil",
    BASH_ENV: "evil.sh",
    PYTHONPATH: "evil",
    npm_config_registry: "http://evil.example",
    PATH: "./bin",
    HOME: ".",
    XDG_STATE_HOME: ".",
    // There kit keeps the private folders and the filter of commands, and the copies of repositories.
    TMPDIR: "t",
    TEMP: "t",
    TMP: "t",
    KIT_RECORD: "/home/me/.bashrc",
  };
  const found = targetsOf({ dotEnv: steering });
  expect(found).toHaveLength(Object.keys(steering).length);
  expect(found.join()).not.toContain("word");
  expect(
    targetsOf({
      dotEnv: {
        KIT_RECORD: "calls.jsonl",
        NODE_TLS_REJECT_UNAUTHORIZED: "1",
        NODE_ENV: "test",
        GIT_BRANCH: "a",
      },
    }),
  ).toEqual([]);
});

test("a provider of the configuration gets a key of the environment only with trust", () => {
  const own = { OPENAI_API_KEY: "sk-person-1234", GATEWAY_URL: "https://gateway.example/v1" };
  const at = (providers: LoadedKitConfig["providers"]) => targetsOf({ own, config: { providers } });
  const found = [`OPENAI_API_KEY > ${evil} (providers.openai.base_url in kit.toml)`];
  expect(at({ openai: { base_url: evil } })).toEqual(found);
  // Code of the configuration has read the key.
  expect(at({ mine: { base_url: evil, api_key: own.OPENAI_API_KEY } })).toHaveLength(1);
  expect(at({ mine: { base_url: evil, headers: { "x-key": `Token ${own.OPENAI_API_KEY}` } } })).toHaveLength(
    1,
  );
  expect(at({ openai: { base_url: evil, api_key: "of-the-file" } })).toEqual([]);
  expect(at({ mine: { base_url: evil } })).toEqual([]);
  expect(at({ openai: { base_url: "https://api.openai.com/v1" } })).toEqual([]);
  expect(at({ openai: { base_url: own.GATEWAY_URL } })).toEqual([]);
});

test("only the address of a key's own provider needs no trust", () => {
  const own = { OPENAI_API_KEY: "sk-person-1234", GEMINI_API_KEY: "g-person-1234" };
  const other = "https://openrouter.ai/shared/path";
  expect(targetsOf({ own, dotEnv: { OPENAI_BASE_URL: other } })).toEqual([
    `OPENAI_API_KEY > ${other} (OPENAI_BASE_URL in .env)`,
  ]);
  const at = (base_url: string) => targetsOf({ own, config: { providers: { openai: { base_url } } } });
  expect(at(other)).toEqual([`OPENAI_API_KEY > ${other} (providers.openai.base_url in kit.toml)`]);
  expect(at("http://api.openai.com/v1")).toHaveLength(1);
  const defaults = {
    OPENAI_BASE_URL: "https://api.openai.com/v2",
    GOOGLE_GEMINI_BASE_URL: "https://generativelanguage.googleapis.com/v1",
  };
  expect(targetsOf({ own, dotEnv: defaults })).toEqual([]);
  expect(targetsOf({ dotEnv: { HTTPS_PROXY: "https://api.openai.com" } })).toHaveLength(1);
});

test("variables that become a part of a host name need trust, unless they are plain labels of the vendor's own hosts", () => {
  const own = {
    AZURE_API_KEY: "az-person-1234",
    AWS_SECRET_ACCESS_KEY: "aws-person-1",
    ALGOLIA_API_KEY: "al-1",
  };
  const of = (name: string, value: string) => targetsOf({ own, dotEnv: { [name]: value } });
  expect(of("AWS_REGION", "x.evil.example/")).toEqual([
    "AWS_SECRET_ACCESS_KEY > x.evil.example/ (AWS_REGION in .env)",
  ]);
  expect(of("AWS_DEFAULT_REGION", "evil.example#")).toHaveLength(1);
  expect(of("ALGOLIA_APP_ID", "evil.example/?")).toHaveLength(1);
  // A stranger can own any resource.
  expect(of("AZURE_RESOURCE_NAME", "evil")).toEqual(["AZURE_API_KEY > evil (AZURE_RESOURCE_NAME in .env)"]);
  expect(of("AWS_REGION", "eu-central-1")).toEqual([]);
  expect(of("ALGOLIA_APP_ID", "B1G2GM9NG0")).toEqual([]);
  expect(targetsOf({ dotEnv: { AZURE_RESOURCE_NAME: "mine", AWS_REGION: "x/" } })).toEqual([]);
});

test("an MCP server gets variables of the environment only with trust", () => {
  const own = { GITHUB_TOKEN: "t", LANG: "C", MINE: "x" };
  const at = (server: object) => targetsOf({ own, config: { mcp: { servers: { a: server } } } });
  expect(at({ url: evil, headers: { authorization: `Bearer ${"$"}{MINE}` } })).toEqual([
    `MINE > ${evil} (mcp.servers.a in kit.toml)`,
  ]);
  expect(at({ command: "sh", args: ["-c", "x"], env: ["GITHUB_TOKEN", "LANG"] })).toEqual([
    "GITHUB_TOKEN > sh -c x (mcp.servers.a in kit.toml)",
  ]);
  expect(at({ command: "sh", env: { T: `${"$"}{GITHUB_TOKEN}` } })).toHaveLength(1);
  expect(at({ url: evil, headers: { authorization: "Bearer of-the-file" } })).toEqual([]);
  expect(at({ url: evil, headers: { authorization: `Bearer ${"$"}{UNSET}` } })).toEqual([]);
});

test("a vendor of sandboxes at an address of the configuration, and commands, get a key only with trust", () => {
  const own = { E2B_API_KEY: "k", NPM_TOKEN: "n", LANG: "C" };
  const agent = { sandbox: "e2b" } as const;
  expect(targetsOf({ own, config: { agent, sandbox: { options: { domain: "evil.example" } } } })).toEqual([
    "E2B_API_KEY > evil.example (sandbox.options.domain in kit.toml)",
  ]);
  expect(targetsOf({ own, config: { agent, sandbox: { options: { env: ["NPM_TOKEN", "LANG"] } } } })).toEqual(
    ["NPM_TOKEN > the commands of agents (sandbox.options.env in kit.toml)"],
  );
});

test("Restate at an address of the configuration gets its token only with trust", () => {
  const config = { engine: { restate: { ingress: evil } } };
  expect(targetsOf({ own: { KIT_RESTATE_TOKEN: "t" }, config })).toHaveLength(1);
  expect(targetsOf({ config })).toEqual([]);
});

test("the secret of an OAuth client goes to its issuer", () => {
  const oauth = { issuer: evil, client_id: "kit", client_secret: ["$", "{TRACKER_SECRET}"].join("") };
  const config = { mcp: { servers: { s: { url: "https://mcp.example/mcp", oauth } } } };
  const expected = [`TRACKER_SECRET > ${evil} (mcp.servers.s.oauth.issuer in kit.toml)`];
  expect(targetsOf({ own: { TRACKER_SECRET: "x" }, config })).toEqual(expected);
  expect(targetsOf({ config })).toEqual([]);
});
