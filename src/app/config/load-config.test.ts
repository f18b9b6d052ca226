import { join } from "node:path";
import { expect, expectTypeOf, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import type { EngineConfig } from "./config-schema.ts";
import { type LoadConfigOptions, type LoadedConfig, loadConfig } from "./load-config.ts";

async function load(
  files: Readonly<Record<string, string>>,
  options: Omit<LoadConfigOptions, "cwd"> = {},
): Promise<LoadedConfig> {
  await using folder = await createTemporaryRepository(files);
  return await loadConfig({ environment: {}, ...options, cwd: folder.root });
}

async function messageOf(toml: string): Promise<string> {
  return await load({ "kit.toml": toml }).then(
    () => "accepted",
    (error: Error) => error.message,
  );
}

test("without a file the configuration is empty", async () => {
  // A program reads the address from its environment: any text.
  expectTypeOf<EngineConfig["url"]>().toEqualTypeOf<string | undefined>();
  expect(await load({})).toEqual({ config: {}, environment: {}, warnings: [] });
});

test("kit.toml is read, with the aliases of formats", async () => {
  const toml = `
    [specs]
    include = ["docs/**"]
    custom = [{ include = "rfc/*.md", spec_type = "design", tags = ["rfc"] }]
    [guidelines]
    source = "claude"
    targets = ["agents", "cursor", "kiro"]
    [server]
    port = 3000
    read_only = true
  `;
  const { config } = await load({ "kit.toml": toml });
  expect(config).toEqual({
    specs: { include: ["docs/**"], custom: [{ include: "rfc/*.md", spec_type: "design", tags: ["rfc"] }] },
    guidelines: { source: "fw_c", targets: ["agents", "fw_b", "steering"] },
    server: { port: 3000, read_only: true },
  });
});

test("a key that kit.config.ts sets to undefined counts as absent, at any depth", async () => {
  const code = `
    export const auth = Object.assign(() => true, { realm: undefined });
    export default {
      store: undefined,
      agent: { model: "a/b", cwd: undefined },
      specs: { custom: [{ include: "rfc/*.md", spec_type: undefined }] },
      server: { port: undefined, auth },
    };`;
  const { config } = await load(
    { "kit.config.ts": code },
    { environment: { KIT_HOST: "127.0.0.2", KIT_MODEL: "c/d" } },
  );
  expect(Object.keys(config).sort()).toEqual(["agent", "server", "specs"]);
  expect(Object.keys(config.agent ?? {})).toEqual(["model"]);
  expect(config.specs).toStrictEqual({ custom: [{ include: "rfc/*.md" }] });
  expect(Object.keys(config.server ?? {}).sort()).toEqual(["auth", "host"]);
  expect(Object.keys(config.server?.auth ?? {})).toEqual(["realm"]);
});

test("an unknown key of kit.config.ts is refused even when it holds undefined", async () => {
  const loading = load({ "kit.config.ts": "export default { serverr: undefined };" });
  await expect(loading).rejects.toThrow("serverr is not a key of kit; did you mean server?");
});

test("kit.config.ts is imported unchanged, with functions and adapters", async () => {
  const code = `
    interface Port { readonly port: number }
    const server: Port & { auth: unknown } = { port: 3000, auth: () => true };
    export default {
      server,
      agent: { hooks: { beforeTool: () => ({ refuse: "No." }) } },
      specs: { adapters: [{ name: "x", framework: "custom", matches: () => false, parse: () => ({ drafts: [], diagnostics: [] }) }] },
    };`;
  const { config, file } = await load({ "kit.config.ts": code });
  expect(config.server?.port).toBe(3000);
  expect(config.server?.auth).toBeTypeOf("function");
  expect(config.specs?.adapters?.[0]?.name).toBe("x");
  expect(config.agent?.hooks).toMatchObject({ beforeTool: expect.any(Function) });
  expect(file).toMatch(/kit\.config\.ts$/);
});

test("hooks of the configuration that kit does not know are named", async () => {
  const loading = load({ "kit.config.ts": "export default { agent: { hooks: { beforTool() {} } } };" });
  await expect(loading).rejects.toThrow("`beforTool` is not a hook; did you mean beforeTool?");
});

test("a file named with --config replaces the conventional one", async () => {
  const files = { "kit.toml": "[server]\nport = 1", "ci/other.toml": "[server]\nport = 2" };
  expect((await load(files, { file: "ci/other.toml" })).config.server?.port).toBe(2);
  await expect(load(files, { file: "missing.toml" })).rejects.toThrow("missing.toml cannot be read.");
  await expect(load({ "kit.yaml": "" }, { file: "kit.yaml" })).rejects.toThrow("not a configuration file");
});

test("two configurations side by side are refused, both named", async () => {
  await expect(load({ "kit.toml": "", "kit.config.ts": "export default {}" })).rejects.toThrow(
    "kit.config.ts and kit.toml",
  );
});

test.each([
  ["[server]\nprot = 1", "server.prot is not a key of kit; did you mean server.port?"],
  ['[specs]\nincludes = ["a"]', "specs.includes is not a key of kit; did you mean specs.include?"],
  ["[zzz]", "zzz is not a key of kit."],
  ['[server]\nport = "3000"', "server.port must be a whole number from 0 to 65535, not a text"],
  ["[server]\nport = 70000", "server.port must be a whole number from 0 to 65535, not 70000"],
  ["[server]\nport = 1.5", "not 1.5"],
  ['[server]\nread_only = "yes"', "server.read_only must be true or false, not a text"],
  ['[specs]\ninclude = "docs/**"', "specs.include must be a list, not a text"],
  ["[specs]\ninclude = [1]", "specs.include[0] must be a text, not 1"],
  ["specs = 1", "specs must be a table, not 1"],
  ['[[specs.custom]]\nspec_type = "design"', "specs.custom[0].include is required"],
  [
    '[[specs.custom]]\ninclude = "a"\nspec_type = "desing"',
    'one of requirement, design, task, constraint, not "desing"',
  ],
  ['[guidelines]\nsource = "copilt"', "guidelines.source must be one of agents, fw_c, fw_b, steering, "],
  ['[server]\nauth = "x"', "server.auth must be a function (only in kit.config.ts)"],
  ['[engine]\nkind = "x"', 'engine.kind must be one of embedded, postgres, restate, not "x"'],
  ["[engine]\nconcurrency = 0", "engine.concurrency must be a whole number from 1 to"],
  ['[agent]\nmodle = "a/b"', "agent.modle is not a key of kit; did you mean agent.model?"],
  [
    '[agent]\nsandbox = "docker"',
    'agent.sandbox must be one of virtual, local, daytona, e2b, modal, runloop, not "docker"',
  ],
  [
    "[agent]\nsandbox = 1",
    "agent.sandbox must be virtual, local, daytona, e2b, modal, runloop or (only in kit.config.ts) a sandbox, not 1",
  ],
  ['[agent]\nbackend = "x"', 'agent.backend must be one of typed, graph, openai_agents, google_adk, not "x"'],
  [
    '[agent]\nbackend = "grpah"',
    'agent.backend must be one of typed, graph, openai_agents, google_adk, not "grpah"; did you mean graph?',
  ],
  [
    "[agent]\nbackend = 1",
    "agent.backend must be typed, graph, openai_agents, google_adk or (only in kit.config.ts) a backend, not 1",
  ],
  [
    '[providers.local]\nbase_url = "127.0.0.1:8080"',
    "providers.local.base_url must be an address such as http://127.0.0.1:8080/v1, not a text",
  ],
  ["[providers.local]\nbase = 1", "providers.local.base is not a key of kit"],
  ["[providers.local.prices]\nm = { input = 1 }", "providers.local.prices.m.output is required"],
  ["[compaction]\nreserve_tokens = -1", "compaction.reserve_tokens must be a whole number from 0 to"],
  ['[agent]\nallowed_commands = "git"', "agent.allowed_commands must be a list, not a text"],
  [
    '[agent]\nallowed_commands = [{ command = "make", unsave = true }]',
    "agent.allowed_commands[0].unsave is not a key of kit; did you mean agent.allowed_commands[0].unsafe?",
  ],
  ["[agent]\nallowed_commands = [{ unsafe = true }]", "agent.allowed_commands[0].command is required"],
  ["[agent]\nallowed_commands = [1]", "agent.allowed_commands[0] must be a text, not 1"],
  ["[agent]\nmax_task_depth = 65", "agent.max_task_depth must be a whole number from 0 to 64, not 65"],
  ['[sandbox]\nkind = "x"', "sandbox.kind is not a key of kit"],
  [
    '[sandbox.options]\nrot = "x"',
    "sandbox.options.rot is not a key of kit; did you mean sandbox.options.root?",
  ],
  ["[sandbox.options]\nfiles = 1", "sandbox.options.files must be a table, not 1"],
  ["[sandbox.options]\nfiles = { a = 1 }", "sandbox.options.files.a must be a text, not 1"],
  ["[sandbox.options]\nenv = [1]", "sandbox.options.env[0] must be a text, not 1"],
  ['[sandbox.options]\nroot = "x"', "sandbox.options is for the sandbox that agent.sandbox names: set it to"],
  [
    '[agent]\nsandbox = "virtual"\n[sandbox.options]\nroot = "x"',
    "sandbox.options.root is not an option of the virtual sandbox, which has folder, files, env",
  ],
  [
    '[agent]\nsandbox = "local"\n[sandbox.options]\nfiles = {}',
    "sandbox.options.files is not an option of the local sandbox, which has root, env",
  ],
  ['store = "redis://host"', "store must be sqlite, memory, a postgres:// address or (only in"],
  ['store = "postgres://u:p/w@host/db"', "store must be sqlite, memory, a postgres:// address or (only in"],
  ['store = "sqlit"', "not a text; did you mean sqlite?"],
  ["[store]\nappend = 1", "not a table"],
  [
    "[[agent.allowed_commands]]\ncommand = 12:00:00",
    "agent.allowed_commands[0].command is a date, which no setting is",
  ],
  ["compaction = 2026-11-23", "compaction is a date, which no setting is"],
  ["a = ", "kit.toml:1:5: invalid value"],
])("%j is refused by name", async (toml, message) => {
  expect(await messageOf(toml)).toContain(message);
});

test("every wrong key is reported at once, and secrets are not repeated", async () => {
  const error: unknown = await load({ "kit.toml": '[server]\nport = -1\napi_keys = "s3cret"' }).catch(
    (reason: unknown) => reason,
  );
  expect(error).toMatchObject({
    code: "invalid_request",
    meta: { issues: [{ path: "server.port" }, { path: "server.api_keys" }] },
  });
  expect(JSON.stringify(error)).not.toContain("s3cret");
  expect(String(error)).not.toContain("s3cret");
});

test("a configuration that throws, is not an object or has no default export says so", async () => {
  await expect(load({ "kit.config.ts": 'throw new Error("mine")' })).rejects.toMatchObject({
    message: "kit.config.ts could not be loaded.",
    hint: "mine (line 1)",
  });
  await expect(load({ "kit.config.ts": "export const a = 1" })).rejects.toThrow("no default export");
  await expect(load({ "kit.config.ts": "export default 7" })).rejects.toThrow("must be a table, not 7");
});

test("the environment wins over the env file, and both over the configuration", async () => {
  const files = {
    "kit.toml": '[server]\nport = 1\nhost = "127.0.0.2"\napi_keys = ["file"]',
    ".env.ci": 'KIT_PORT=2\nKIT_API_KEYS="a, b"\nKIT_READ_ONLY=on\nOTHER=x',
  };
  const { config, environment } = await load(files, { envFile: ".env.ci", environment: { KIT_PORT: "3" } });
  expect(config.server).toEqual({ port: 3, host: "127.0.0.2", api_keys: ["a", "b"], read_only: true });
  expect(environment.OTHER).toBe("x");
  await expect(load(files, { envFile: ".env.none" })).rejects.toThrow(".env.none cannot be read.");
});

test(".env is read if dotEnv is set and no file is named, and variables that are already set stay", async () => {
  const files = { ".env": "KIT_PORT=2\nMY_API_KEY=canary-of-a-file\n", ".env.other": "KIT_PORT=3\n" };
  const environment = { MY_API_KEY: "set-by-a-person" };
  const { config, envFile, ...loaded } = await load(files, { dotEnv: true, environment });
  expect(config.server?.port).toBe(2);
  expect(envFile).toEqual({ name: ".env", variables: 2, set: 1 });
  expect(loaded.environment.MY_API_KEY).toBe("set-by-a-person");
  const other = await load(files, { dotEnv: true, envFile: ".env.other", environment: {} });
  expect(other.config.server?.port).toBe(3);
  const none = await load(files, { environment: {} });
  expect([none.config.server, none.envFile]).toEqual([undefined, undefined]);
  // The keys of a file of secrets are masked, whatever prints it.
  expect(none.fileSecrets).toEqual(["canary-of-a-file"]);
  expect((await load({}, { dotEnv: true, environment: {} })).envFile).toBeUndefined();
});

test("KIT_MODEL overrides the model of the file, and no other key of its table", async () => {
  const files = { "kit.toml": '[agent]\nmodel = "a/b"\ncwd = "api"\n[server]\nport = 1' };
  const { config } = await load(files, { environment: { KIT_MODEL: "c/d", KIT_HOST: "127.0.0.2" } });
  expect(config).toEqual({ agent: { model: "c/d", cwd: "api" }, server: { port: 1, host: "127.0.0.2" } });
});

test("KIT_STORE overrides the store of the file, and an error does not repeat its value", async () => {
  const files = { "kit.toml": 'store = "memory"\n[server]\nport = 1' };
  const address = "postgres://u:s3cret@host/db";
  const { config } = await load(files, { environment: { KIT_STORE: address } });
  expect(config).toEqual({ store: address, server: { port: 1 } });
  const error = await load(files, { environment: { KIT_STORE: "mysql://u:s3cret@host" } }).catch(String);
  expect(error).toContain("KIT_STORE must be sqlite");
  expect(error).not.toContain("s3cret");
});

test("an invalid variable is refused with its name, and a misspelled one is a warning", async () => {
  await expect(load({}, { environment: { KIT_PORT: "http" } })).rejects.toThrow(
    "The environment: KIT_PORT must be",
  );
  await expect(load({}, { environment: { KIT_READ_ONLY: "maybe" } })).rejects.toThrow(
    "KIT_READ_ONLY must be",
  );
  const { config, warnings } = await load({}, { environment: { KIT_API_KEYZ: "a", KIT_API_KEYS: " " } });
  expect(config).toEqual({});
  expect(warnings).toEqual(["KIT_API_KEYZ is not a variable of kit; did you mean KIT_API_KEYS?"]);
  const ofCommands = { KIT_API_KEY: "a", KIT_URL: "http://127.0.0.1:1", KIT_DEBUG: "1" };
  expect((await load({}, { environment: ofCommands })).warnings).toEqual([]);
});

test("a configuration in a parent folder does not count", async () => {
  await using folder = await createTemporaryRepository({ "kit.toml": "[server]\nport = 1", "sub/a.md": "" });
  const loaded = await loadConfig({ cwd: join(folder.root, "sub"), environment: {} });
  expect(loaded.config).toEqual({});
});

test("an engine can be the address of its database, and an error does not repeat an invalid address", async () => {
  const address = "postgres://kit:geheim123@db.example/kit";
  const { config } = await load(
    { "kit.toml": `engine = "${address}"\n` },
    { environment: { KIT_NODE_ADDRESS: "http://10.0.0.7:2024" } },
  );
  expect(config.engine).toEqual({ kind: "postgres", url: address, address: "http://10.0.0.7:2024" });
  const table = await load({ "kit.toml": "[engine]\nconcurrency = 3\n" }, { environment: {} });
  expect(table.config.engine).toEqual({ concurrency: 3 });
  for (const [toml, message] of [
    ['engine = "mysql://u:geheim123@host"', "engine must be a postgres:// address or a table, not a text"],
    ["[engine]\nconcurency = 3", "engine.concurency is not a key of kit; did you mean engine.concurrency?"],
    ['[engine]\naddress = "10.0.0.7"', "engine.address must be an http:// address"],
  ]) {
    const error = await load({ "kit.toml": `${toml}\n` }, { environment: {} }).catch(String);
    expect(error).toContain(message);
    expect(error).not.toContain("geheim123");
  }
});
