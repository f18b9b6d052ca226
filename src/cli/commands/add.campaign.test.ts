import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { delimiter, dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { stripVTControlCharacters } from "node:util";
import { parse } from "smol-toml";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { parseConfig } from "../../app/config/config-schema.ts";
import { testFolder } from "../../testing/test-folder.ts";
import { additions } from "../add/additions.ts";
import { managerProcess } from "../add/package-manager.ts";
import { peerOf, satisfies } from "../add/peer-versions.ts";
import { withoutKeys } from "../testing/agents-project.ts";
import { type RunResult, runKit, startKit } from "../testing/run-kit.ts";

const folder = testFolder(afterAll);

let number = 0;

/** A project of its own, with these files beside its package.json. */
function project(files: Readonly<Record<string, string>> = {}): string {
  const root = join(folder, `project-${++number}`);
  write(root, { "package.json": '{ "name": "shop", "private": true }\n', ...files });
  mkdirSync(join(root, ".git"));
  return root;
}

function write(root: string, files: Readonly<Record<string, string>>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
}

function kit(
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>> = {},
): Promise<RunResult> {
  return runKit(args, { cwd, env: { ...withoutKeys, KIT_STORE: "", PATH: managersPath, ...env } });
}

/** The command that would be run, and what would be written. */
async function dryRun(args: readonly string[], cwd: string) {
  const { stdout } = await kit(["add", ...args, "--dry-run", "--json"], cwd);
  const { command, configuration } = JSON.parse(stdout);
  return { command: command?.join(" "), configuration };
}

// Package managers that write down how they were called, and install nothing but the folder of a package.
const managers = join(folder, "managers");
const managersPath = `relative${delimiter}${managers}${delimiter}${dirname(process.execPath)}`;
for (const name of ["npm", "pnpm", "yarn"]) {
  write(managers, {
    [name]: `#!${process.execPath}
const { mkdirSync, writeFileSync, appendFileSync } = require("node:fs");
appendFileSync("called.txt", JSON.stringify(["${name}", ...process.argv.slice(2)]) + "\\n");
console.log("resolving \\u001b[2Jpackages");
if (process.env.FAIL) { console.error("E503 registry is away"); process.exit(7); }
for (const word of process.argv.slice(3).filter((word) => !word.startsWith("-"))) {
  const [, package, version] = /^(.+)@(.+)$/.exec(word);
  mkdirSync("node_modules/" + package, { recursive: true });
  writeFileSync("node_modules/" + package + "/package.json", JSON.stringify({ name: package, version }));
}
`,
  });
  chmodSync(join(managers, name), 0o755);
}

const anthropic = peerOf("@ai-sdk/anthropic").tested;

function installed(name: string, version: string): Readonly<Record<string, string>> {
  return { [`node_modules/${name}/package.json`]: JSON.stringify({ name, version }) };
}

test("every row has packages that are peers of kit, keys that the configuration accepts, and a page that exists", () => {
  for (const { name, packages, configuration = {}, docs } of additions) {
    for (const peer of packages.map(peerOf))
      expect([peer.name, satisfies(peer.tested, peer.range)]).toEqual([peer.name, true]);
    const text = Object.entries(configuration).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
    expect([name, parseConfig(parse(text.join("\n"))).issues]).toEqual([name, []]);
    const [page = "", anchor = ""] = docs.split("#");
    const content = readFileSync(new URL(`../../../${page}`, import.meta.url), "utf8");
    expect(content.toLowerCase()).toContain(`# ${anchor}`.trimEnd());
  }
});

test("kit add installs the package, sets the configuration's key, names the variable to set, and checks the result", async () => {
  const root = project({ "kit.toml": "# ours\n[agent]\nmax_turns = 5 # enough\n" });
  const tarball = join(folder, "package.tgz");
  write(folder, {
    "package/package.json": JSON.stringify({ name: "@ai-sdk/anthropic", version: anthropic }),
  });
  execFileSync("tar", ["-czf", tarball, "-C", folder, "package"]);
  const requestedUrls: string[] = [];
  const registry = createServer(({ url = "", headers }, reply) => {
    requestedUrls.push(url);
    if (url.endsWith(".tgz")) return void reply.end(readFileSync(tarball));
    const name = "@ai-sdk/anthropic";
    const dist = { tarball: `http://${headers.host}/a.tgz` };
    const versions = {
      [anthropic]: { name, version: anthropic, dist },
      "4.999.0": { name, version: "4.999.0", dist },
    };
    reply.setHeader("content-type", "application/json");
    reply.end(JSON.stringify({ name, "dist-tags": { latest: "4.999.0" }, versions }));
  });
  onTestFinished(() => void registry.close());
  await new Promise<void>((resolve) => registry.listen(0, "127.0.0.1", resolve));
  const { port } = registry.address() as AddressInfo;
  const env = {
    PATH: process.env.PATH ?? "",
    npm_config_registry: `http://127.0.0.1:${port}`,
    npm_config_cache: join(folder, "cache"),
    // The caller can have asked its own npm to be silent.
    npm_config_loglevel: "notice",
  };
  const { exitCode, stdout, stderr } = await kit(["add", "anthropic"], root, env);
  expect(stderr).toMatch(/added 1 package/);
  expect(stdout).toContain(`$ npm install --save --no-audit --no-fund @ai-sdk/anthropic@${anthropic}`);
  expect(stdout).toContain("! anthropic  ANTHROPIC_API_KEY is not set.");
  expect(exitCode).toBe(0);
  expect(requestedUrls).toContain("/a.tgz");
  expect(JSON.parse(readFileSync(join(root, "package.json"), "utf8")).dependencies).toEqual({
    "@ai-sdk/anthropic": `^${anthropic}`,
  });
  expect(readFileSync(join(root, "kit.toml"), "utf8")).toBe(
    '# ours\n[agent]\nmax_turns = 5 # enough\nmodel = "anthropic/claude-sonnet-4-6"\n',
  );
});

test("a second call changes nothing, and finds the key without writing it to a file", async () => {
  const root = project();
  const env = { ANTHROPIC_API_KEY: "sk-canary-1234567890" };
  expect((await kit(["add", "anthropic"], root, env)).exitCode).toBe(0);
  const before = readFileSync(join(root, "kit.toml"), "utf8");
  // The stand-in of a package manager does not write package.json.
  write(root, { "package.json": JSON.stringify({ dependencies: { "@ai-sdk/anthropic": `^${anthropic}` } }) });
  const { stdout, stderr } = await kit(["add", "Claude"], root, env);
  expect(stderr).toContain("anthropic was added before.");
  expect(stdout).toContain("✓ anthropic  ANTHROPIC_API_KEY is set");
  expect(stdout).toContain("✓ model");
  expect(readFileSync(join(root, "kit.toml"), "utf8")).toBe(before);
  expect(before).toBe('[agent]\nmodel = "anthropic/claude-sonnet-4-6"\n');
  expect(readFileSync(join(root, "called.txt"), "utf8").trim().split("\n")).toHaveLength(1);
  expect(stdout + stderr + before).not.toContain("canary");
});

test("a failed installation leaves the configuration unchanged, and prints the package manager's own message", async () => {
  const root = project();
  const { exitCode, stderr } = await kit(["add", "anthropic"], root, { FAIL: "1" });
  expect(exitCode).toBe(1);
  expect(stderr).toContain("resolving packages\n");
  expect(stderr).toContain("E503 registry is away");
  expect(stderr).toContain("npm ended with 7; the configuration is as it was.");
  expect(existsSync(join(root, "kit.toml"))).toBe(false);
});

test.each([
  ["lodash"],
  ["../x"],
  ["anthropic e2b"],
  ["anthropic@1.0.0"],
  ["https://host/x.tgz"],
  ["anthropic;touch called.txt"],
  ["constructor"],
  [""],
  ["-g"],
  ["--registry=http://127.0.0.1:1"],
])("%j never reaches a package manager", async (name) => {
  const root = project();
  const { exitCode, stderr } = await kit(["add", "--", name], root);
  expect(exitCode).toBe(2);
  expect(stderr).toContain(`kit add does not know '${name}'.`);
  expect(existsSync(join(root, "called.txt"))).toBe(false);
});

test("a misspelled name is answered with the most similar one", async () => {
  const { stderr } = await kit(["add", "antropic"], project());
  expect(stderr).toMatch(/Did you mean anthropic\? It is one of anthropic, openai, /);
});

const spec = `@ai-sdk/anthropic@${anthropic}`;

test.each<[string, Readonly<Record<string, string>>, string]>([
  ["nothing", {}, "npm install --save --no-audit --no-fund"],
  ["a lock file of pnpm", { "pnpm-lock.yaml": "" }, "pnpm add"],
  ["the root of pnpm's workspace", { "pnpm-workspace.yaml": "packages: [a]\n" }, "pnpm add --workspace-root"],
  ["a lock file of Yarn 1", { "yarn.lock": "" }, "yarn add"],
  ["a lock file of Bun", { "bun.lock": "" }, "bun add"],
  [
    "the root of a workspace of Yarn 1",
    { "yarn.lock": "", "package.json": '{ "workspaces": ["a"] }' },
    "yarn add --ignore-workspace-root-check",
  ],
  [
    "the root of a workspace of a later Yarn",
    { "yarn.lock": "", ".yarnrc.yml": "", "package.json": '{ "workspaces": ["a"] }' },
    "yarn add",
  ],
  [
    "packageManager, whatever lies beside it",
    { "package-lock.json": "{}", "package.json": '{ "packageManager": "pnpm@10.1.0" }' },
    "pnpm add",
  ],
  ["devEngines", { "package.json": '{ "devEngines": { "packageManager": { "name": "bun" } } }' }, "bun add"],
])("%s selects the package manager", async (_, files, words) => {
  expect((await dryRun(["anthropic"], project(files))).command).toBe(`${words} ${spec}`);
});

test("a member of a workspace uses the package manager of the root, and gets the package itself", async () => {
  const root = project({
    "pnpm-lock.yaml": "",
    "pnpm-workspace.yaml": "",
    "packages/a/package.json": "{}",
    "packages/a/kit.toml": "",
  });
  const { command } = await dryRun(["anthropic"], join(root, "packages/a"));
  expect(command).toBe(`pnpm add ${spec}`);
});

test("two lock files are refused, and --with selects one", async () => {
  const root = project({ "package-lock.json": "{}", "yarn.lock": "" });
  const { exitCode, stderr } = await kit(["add", "anthropic", "--dry-run"], root);
  expect(exitCode).toBe(2);
  expect(stderr).toContain("package-lock.json, yarn.lock");
  expect((await dryRun(["anthropic", "--with", "yarn"], root)).command).toBe(`yarn add ${spec}`);
  expect((await kit(["add", "anthropic", "--with", "cargo"], root)).stderr).toContain(
    "'cargo' is not a package manager",
  );
});

test("a missing package manager, and one that kit does not know, are named", async () => {
  const missing = await kit(["add", "anthropic", "--with", "bun"], project());
  expect(missing.exitCode).toBe(1);
  expect(missing.stderr).toContain("bun is not found in PATH");
  const unknown = await kit(
    ["add", "anthropic"],
    project({ "package.json": '{ "packageManager": "cnpm@1.0.0" }' }),
  );
  expect(unknown.exitCode).toBe(2);
  expect(unknown.stderr).toContain("cnpm@1.0.0");
});

test.each<[string, Readonly<Record<string, string>>, string | undefined]>([
  [
    "a newer one that kit takes stays",
    {
      ...installed("@ai-sdk/anthropic", "4.1.0"),
      "package.json": '{ "dependencies": { "@ai-sdk/anthropic": "^4.1.0" } }',
    },
    undefined,
  ],
  [
    "one that another package brought is asked for as it is",
    installed("@ai-sdk/anthropic", "4.1.0"),
    "4.1.0",
  ],
  [
    "one that is asked for, but not installed, is not older than that",
    { "package.json": '{ "devDependencies": { "@ai-sdk/anthropic": "^4.1.0" } }' },
    "^4.1.0",
  ],
  [
    "an older one is replaced",
    {
      ...installed("@ai-sdk/anthropic", "3.0.0"),
      "package.json": '{ "dependencies": { "@ai-sdk/anthropic": "3.0.0" } }',
    },
    anthropic,
  ],
])("%s", async (_, files, version) => {
  const { command } = await dryRun(["anthropic"], project(files));
  expect(command?.split(" ").at(-1)).toBe(version === undefined ? undefined : `@ai-sdk/anthropic@${version}`);
});

test.each<[string, Readonly<Record<string, string>>]>([
  ["5.0.0", installed("@ai-sdk/anthropic", "5.0.0")],
  ["5.0.0-beta.1", installed("@ai-sdk/anthropic", "5.0.0-beta.1")],
  ["^5.0.0", { "package.json": '{ "dependencies": { "@ai-sdk/anthropic": "^5.0.0" } }' }],
  ["file:../mine", { "package.json": '{ "dependencies": { "@ai-sdk/anthropic": "file:../mine" } }' }],
])("%s of the project is not replaced by kit's default", async (version, files) => {
  const root = project(files);
  const { exitCode, stderr } = await kit(["add", "anthropic"], root);
  expect(exitCode).toBe(1);
  expect(stderr).toContain(version);
  expect(stderr).toContain("nothing was changed");
  expect(existsSync(join(root, "called.txt"))).toBe(false);
});

test("a key with another value is kept, and the line that would change it is printed", async () => {
  const text = '[agent]\nmodel = "openai/gpt-5.1"\n';
  const root = project({ "kit.toml": text });
  const { stdout, exitCode } = await kit(["add", "anthropic"], root);
  expect(exitCode).toBe(0);
  expect(stdout).toContain('= agent.model stays "openai/gpt-5.1"');
  expect(stdout).toContain('! To use it: agent.model = "anthropic/claude-sonnet-4-6"');
  expect(readFileSync(join(root, "kit.toml"), "utf8")).toBe(text);
});

test.each([
  [
    "kit.config.mjs",
    "export default { agent: { max_turns: 5 } };\n",
    'agent: { model: "anthropic/claude-sonnet-4-6" },',
  ],
  ["kit.toml", "agent = { max_turns = 5 }\n", 'agent.model = "anthropic/claude-sonnet-4-6"'],
])("%s that cannot be edited safely is kept, and the line is printed", async (file, text, line) => {
  const root = project({ [file]: text });
  const { stdout, exitCode } = await kit(["add", "anthropic"], root);
  expect(exitCode).toBe(0);
  expect(stdout).toContain(`! Add to ${file} by hand:\n    ${line}\n`);
  expect(readFileSync(join(root, file), "utf8")).toBe(text);
});

test("an invalid configuration and a folder without package.json are reported before anything is installed", async () => {
  const root = project({ "kit.toml": "[agent]\nmodle = 1\n" });
  expect((await kit(["add", "anthropic"], root)).exitCode).toBe(2);
  expect(existsSync(join(root, "called.txt"))).toBe(false);
  const bare = join(folder, "bare");
  mkdirSync(join(bare, ".git"), { recursive: true });
  const { exitCode, stderr } = await kit(["add", "anthropic"], bare);
  expect(exitCode).toBe(2);
  expect(stderr).toContain("Run: npm init -y");
});

test("the address of Postgres comes from a variable, because it contains a password", async () => {
  const root = project();
  const { stdout, exitCode } = await kit(["add", "pg"], root);
  expect(exitCode).toBe(0);
  expect(stdout).toContain("KIT_STORE is not set");
  expect(stdout).toContain("postgres://user:password@host:5432/database");
  expect(existsSync(join(root, "kit.toml"))).toBe(false);
});

test("without a name, everything that can be added is listed, with what is installed", async () => {
  const root = project(installed("pg", "8.23.1"));
  const { stdout } = await kit(["add"], root);
  expect(stdout).toContain("postgres\tstore\t8.23.1\tpg\tKIT_STORE\n");
  expect(stdout.trim().split("\n")).toHaveLength(additions.length);
  const list = JSON.parse((await kit(["add", "--json"], root)).stdout);
  expect(list.additions.map(({ name }: { name: string }) => name)).toEqual(additions.map(({ name }) => name));
});

test("the list fits 80 columns and cuts no variable", async () => {
  const { stdout } = await runKit(["add"], { cwd: project(), env: withoutKeys, columns: 80 });
  const lines = stripVTControlCharacters(stdout).trimEnd().split("\n");
  expect(lines).toHaveLength(additions.length + 1);
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
  for (const { variables: [variable = ""] = [] } of additions) expect(lines.join("\n")).toContain(variable);
});

test("on Windows, the system's shell starts the package manager with one line", () => {
  const words = ["npm", "install", "@ai-sdk/anthropic@4.0.105", "--prefix", "C:\\My Files & more"];
  expect(managerProcess(words, "win32")).toMatchObject({
    args: ["/d", "/s", "/c", '"npm install @ai-sdk/anthropic@4.0.105 --prefix "C:\\My Files & more""'],
    windowsVerbatimArguments: true,
  });
  expect(managerProcess(words, "linux")).toEqual({ file: "npm", args: words.slice(1) });
});

test("a kit that is installed outside of the project uses the project's packages, and otherwise its own", async () => {
  const root = project({
    "node_modules/@ai-sdk/anthropic/package.json": JSON.stringify({
      name: "@ai-sdk/anthropic",
      version: anthropic,
      type: "module",
      exports: { ".": { import: "./index.js" } },
    }),
    "node_modules/@ai-sdk/anthropic/index.js":
      'console.error("the project\'s own"); export { createAnthropic } from "@ai-sdk/anthropic/real";',
  });
  // Kit's own copy is hidden from kit alone, as it is where kit was installed without it.
  const hidden = `import { registerHooks } from "node:module";
registerHooks({ resolve: (name, context, next) =>
  next(name === "@ai-sdk/anthropic" && context.parentURL?.includes("/src/models/") ? "not-installed" :
    name === "@ai-sdk/anthropic/real" ? ${JSON.stringify(import.meta.resolve("@ai-sdk/anthropic"))} : name, context) });`;
  const env = { ...withoutKeys, ANTHROPIC_API_KEY: "sk-test", KIT_MODEL: "anthropic/claude-sonnet-4-6" };
  const doctor = async (options: Readonly<Record<string, string>>) => {
    const child = startKit(["doctor", "--json"], { cwd: root, env: { ...env, ...options } });
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
    const { checks } = JSON.parse(stdout) as { checks: { name: string; status: string }[] };
    return [checks.find(({ name }) => name === "model")?.status, stderr.includes("the project's own")];
  };
  expect(
    await doctor({ NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hidden)}` }),
  ).toEqual(["ok", true]);
  expect(await doctor({})).toEqual(["ok", false]);
});
