import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { afterEach, expect, test } from "vitest";
import { runKit } from "../testing/run-kit.ts";

const kit = fileURLToPath(new URL("../../../", import.meta.url));
const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

const agent = 'import { createAgent } from "kit";\nexport default createAgent({ instructions: "Help." });\n';

function projectOf(files: Readonly<Record<string, string>>): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "kit-cli-build-")));
  folders.push(root);
  for (const [path, text] of Object.entries({ "src/agents/helper.ts": agent, ...files })) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  mkdirSync(join(root, "node_modules"), { recursive: true });
  symlinkSync(kit, join(root, "node_modules/kit"));
  return root;
}

test("code that an output cannot contain is named with its file and a remedy, and nothing is written", async () => {
  const key = "sk-live-0123456789abcdef0123";
  const cwd = projectOf({
    "src/agents/broken.ts": "export default 3;\n",
    "src/agents/talks.ts": agent.replace("Help.", `Use ${key}.`),
    ".agents/skills/pay/SKILL.md": "---\nname: pay\ndescription: Pays.\n---\nPay.\n",
    ".agents/skills/pay/.env": "TOKEN=abc\n",
  });
  const { exitCode, stderr } = await runKit(["build"], { cwd, env: { PAY_API_KEY: key } });
  expect(exitCode).toBe(1);
  expect(stderr).toContain("src/agents/broken.ts cannot be used: It has no agent as its default export");
  expect(stderr).toContain("src/agents/talks.js holds a secret in full");
  expect(stderr).toContain(".agents/skills/pay/.env is a file of secrets by its name");
  expect(stderr).toContain("3 problems; nothing was written.");
  expect(stderr).not.toContain(key);
  expect(existsSync(join(cwd, "build"))).toBe(false);
});

test("--check writes nothing, and a wrong target or a missing file of build.include is an error", async () => {
  const cwd = projectOf({ "kit.toml": '[build]\ninclude = ["prompts/**"]\n' });
  const checked = await runKit(["build", "--check"], { cwd });
  expect(checked.exitCode).toBe(0);
  expect(checked.stdout).toMatch(/node can run this project: \d+ files, \d+\.\d MB\. Nothing was written\./);
  expect(checked.stderr).toContain('build.include has "prompts/**", which matches no file.');
  expect(existsSync(join(cwd, "build"))).toBe(false);
  const wrong = await runKit(["build", "--target", "nodee"], { cwd });
  expect(wrong.exitCode).toBe(2);
  expect(wrong.stderr).toContain("Did you mean node?");
});

test("packages that are not bundled are listed with their installed versions", async () => {
  const cwd = projectOf({
    "package.json": '{"dependencies": {"pg": "^8.0.0"}}',
    "node_modules/pg/package.json": '{"name": "pg", "version": "8.16.3", "main": "i.js"}',
  });
  const { exitCode, stdout } = await runKit(["build", "--json", "--out", "out dir"], { cwd });
  expect(exitCode).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ target: "node", dependencies: { pg: "8.16.3" }, problems: [] });
  expect(JSON.parse(readFileSync(join(cwd, "out dir/package.json"), "utf8")).dependencies).toEqual({
    pg: "8.16.3",
  });
  expect(JSON.parse(stdout).next.slice(0, 2)).toEqual(["cd 'out dir'", "npm install --omit=dev"]);
  expect(JSON.parse(stdout).warnings).toEqual([expect.stringContaining("has no package-lock.json")]);
  const packages = { "node_modules/pg": { version: "8.16.3" } };
  writeFileSync(join(cwd, "package-lock.json"), JSON.stringify({ lockfileVersion: 3, packages }));
  const locked = await runKit(["build", "--json", "--out", "out dir"], { cwd });
  expect(JSON.parse(locked.stdout)).toMatchObject({
    next: ["cd 'out dir'", "npm ci --omit=dev", "node server.mjs"],
    warnings: [],
  });
  expect(JSON.parse(readFileSync(join(cwd, "out dir/package-lock.json"), "utf8")).packages).toMatchObject(
    packages,
  );
});

test("the worker of a project of kit init leaves half a megabyte of Cloudflare's free plan to the project", async () => {
  const cwd = projectOf({});
  expect((await runKit(["init"], { cwd })).exitCode).toBe(0);
  const { exitCode, stderr } = await runKit(["build", "--target", "cloudflare"], { cwd });
  expect([exitCode, stderr]).toEqual([0, ""]);
  const code = readFileSync(join(cwd, "build/cloudflare/app/worker.js"));
  // A checkout that was never built has no console, which takes 0.9 MB.
  const megabytes = existsSync(join(kit, "dist/console")) ? 2.5 : 1.6;
  expect(gzipSync(code).byteLength).toBeLessThan(megabytes * 1024 * 1024);
});
