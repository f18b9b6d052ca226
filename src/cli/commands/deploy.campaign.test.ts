import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { isCampaign } from "../../testing/campaign.suite.ts";
import { type RunResult, runKit } from "../testing/run-kit.ts";

const kit = fileURLToPath(new URL("../../../", import.meta.url));
let root = "";
let tools = "";
let server: Server;
let address = "";

beforeAll(async () => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "kit-deploy-")));
  const files = {
    "src/agents/reviewer.ts": `import { createAgent } from "kit";
export default createAgent({ instructions: "Review.", model: "openai/gpt-5.1" });
`,
  };
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  mkdirSync(join(root, "node_modules"));
  symlinkSync(kit, join(root, "node_modules/kit"));
  symlinkSync(join(kit, "node_modules/pg"), join(root, "node_modules/pg"));
  server = createServer((request, response) => response.end(request.url === "/health" ? '{"ok":true}' : ""));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const bound = server.address();
  address = `http://127.0.0.1:${typeof bound === "object" ? bound?.port : 0}`;
});

beforeEach(() => {
  tools = mkdtempSync(join(root, "tools-"));
});

afterAll(() => {
  server.close();
  rmSync(root, { recursive: true, force: true });
});

/** A program that notes its arguments, one call a line, and its input. */
function tool(name: string, script = ""): void {
  const text = `#!/bin/sh
line=
for word in "$@"; do line="$line[$word]"; done
echo "$line" >> '${tools}/calls'
${script}
`;
  writeFileSync(join(tools, name), text);
  chmodSync(join(tools, name), 0o755);
}

const calls = (): readonly string[] =>
  existsSync(join(tools, "calls")) ? readFileSync(join(tools, "calls"), "utf8").trimEnd().split("\n") : [];

function deploy(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<RunResult> {
  return runKit(["deploy", ...args], { cwd: root, env: { OPENAI_API_KEY: "", ...env, PATH: tools } });
}

test("a dry run builds, prints the commands that it would run, and runs none", async () => {
  for (const name of ["docker", "fly", "railway", "gh", "glab", "vercel", "netlify"]) tool(name);
  const others = ["docker", "railway", "github-actions", "gitlab-ci", "netlify"];
  for (const target of ["fly", "vercel", ...(isCampaign ? others : [])]) {
    const { exitCode, stdout } = await deploy(["--target", target, "--dry-run"], {
      OPENAI_API_KEY: "sk-of-the-test-0123456789",
    });
    expect(exitCode).toBe(0);
    expect(stdout).toContain("Nothing was sent.");
    expect(stdout).not.toContain("sk-of-the-test");
  }
  expect(calls()).toEqual([]);
  expect(existsSync(join(root, "build/fly/fly.toml"))).toBe(true);
});

test("deploy checks that the platform's tool is signed in, sends the output, and then checks the health of the address", async () => {
  tool(
    "railway",
    `case "$1" in up) echo sending; echo "\\033[2Jdone" >&2;; domain) echo "Domain: ${address}";; esac`,
  );
  const { exitCode, stdout } = await deploy(["--target", "railway", "--out", "out dir"]);
  expect(exitCode).toBe(0);
  expect(calls()).toEqual([
    "[whoami]",
    `[up][${join(root, "out dir")}][--path-as-root][--no-gitignore][--ci]`,
    "[domain]",
  ]);
  expect(stdout).toMatch(/^sending$/m);
  expect(stdout).not.toContain("\u001b[2J");
  expect(stdout).toContain(`${address} is healthy.`);
});

test("a function is sent from its output's folder, and the printed address is the one that the tool has reported", async () => {
  tool(
    "vercel",
    `pwd > '${tools}/place'; echo "https://shop-1a2b.vercel.app"; echo "Aliased: ${address} [3s]" >&2`,
  );
  const vercel = await deploy(["--target", "vercel"]);
  expect(vercel.stderr).toMatch(/^Waiting up to \d+ s for http\S+\/health to answer …$/m);
  expect(vercel.stdout).toContain(`${address} is healthy.`);
  expect(vercel.exitCode).toBe(0);
  expect(readFileSync(join(tools, "place"), "utf8").trim()).toBe(join(root, "build/vercel"));
  tool("netlify", `printf 'Website URL:\\033[0m  ${address}\\n'`);
  const netlify = await deploy(["--target", "netlify"]);
  expect(netlify.stdout).toContain(`${address} is healthy.`);
  expect(calls()).toEqual([
    "[whoami]",
    "[deploy][--prebuilt][--prod]",
    "[status]",
    "[deploy][--prod][--no-build][--dir][app/public][--functions][app/functions]",
  ]);
});

test("the exit code is that of the tool, and with --json stdout has only the result", async () => {
  tool("railway", '[ "$1" = up ] && { echo "quota exceeded"; exit 7; } || true');
  const { exitCode, stdout, stderr } = await deploy(["--target", "railway", "--json"]);
  expect(exitCode).toBe(7);
  expect(JSON.parse(stdout)).toMatchObject({ target: "railway", exit_code: 7 });
  expect(stderr).toContain("quota exceeded");
});

test("if the tool is missing or signed out, the error tells what to do, and the built output is kept", async () => {
  rmSync(join(root, "build"), { recursive: true, force: true });
  const without = await deploy(["--target", "fly"]);
  expect(without.exitCode).toBe(1);
  expect(without.stderr).toContain("fly is not installed; nothing was sent.");
  expect(without.stderr).toContain("https://fly.io/docs/flyctl/install/");
  expect(existsSync(join(root, "build/fly/app/server.mjs"))).toBe(true);
  tool("flyctl", "echo 'No access token available' >&2; exit 1");
  const signedOut = await deploy(["--target", "fly"]);
  expect(signedOut.exitCode).toBe(1);
  expect(signedOut.stderr).toContain("No access token available");
  expect(signedOut.stderr).toContain("fly auth login");
  expect(calls()).toEqual(["[auth][whoami]"]);
});

test("a server on a public address is not started without keys", async () => {
  tool("docker");
  const { exitCode, stderr } = await deploy(["--target", "docker"]);
  expect(exitCode).toBe(2);
  expect(stderr).toContain("KIT_API_KEYS must be set");
  expect(calls()).toEqual([]);
});

test("the tool gets the value of a secret through its stdin, never in an argument or an output", async () => {
  const key = "sk-of-the-test-0123456789";
  tool("gh", `[ "$1" = secret ] && { read -r value; echo "$value" > '${tools}/input'; } || true`);
  const { exitCode, stdout, stderr } = await deploy(["--target", "github-actions"], { OPENAI_API_KEY: key });
  expect(exitCode).toBe(0);
  expect(calls()).toEqual(["[auth][status]", "[secret][set][OPENAI_API_KEY]"]);
  expect(readFileSync(join(tools, "input"), "utf8")).toBe(`${key}\n`);
  expect(stdout + stderr).not.toContain(key);
});

test("a target that kit cannot send prints the next steps", async () => {
  const { exitCode, stderr } = await deploy(["--target", "node"]);
  expect(exitCode).toBe(2);
  expect(stderr).toContain("kit build --target node");
  expect((await deploy([])).exitCode).toBe(2);
});

const keys = "a-key-of-the-deploy-test-0123456789";
const deployWorker = (args: readonly string[], env: Readonly<Record<string, string>>): Promise<RunResult> =>
  runKit(["deploy", "--target", "cloudflare", ...args], {
    cwd: root,
    env: { OPENAI_API_KEY: "", ...env, PATH: `${tools}:/usr/bin:/bin` },
  });

test("a dry run of a worker sends nothing, and writes no secret", async () => {
  tool("wrangler");
  const { exitCode, stdout } = await deployWorker(["--dry-run"], { KIT_API_KEYS: keys });
  expect([exitCode, calls()]).toEqual([0, []]);
  expect(stdout).toContain("wrangler deploy --dry-run");
  expect(stdout).not.toContain(keys);
  const text = readFileSync(join(root, "build/cloudflare/wrangler.jsonc"), "utf8");
  expect(existsSync(join(root, "build/cloudflare", JSON.parse(text.replace(/^.*\n/, "")).main))).toBe(true);
  expect(existsSync(join(root, "build/cloudflare/.dev.vars"))).toBe(false);
});

test("wrangler checks a worker before it is sent, and gets its secrets through stdin after the worker exists", async () => {
  tool("wrangler", `if [ "$1" = secret ]; then cat > '${tools}/input'; fi`);
  expect((await deployWorker([], { KIT_API_KEYS: keys })).exitCode).toBe(0);
  expect(calls()).toEqual(["[whoami]", "[deploy][--dry-run]", "[deploy]", "[secret][put][KIT_API_KEYS]"]);
  expect(readFileSync(join(tools, "input"), "utf8").trim()).toBe(keys);
});
