import { execFileSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { e2b } from "../../sandboxes/e2b/e2b-sandbox.ts";
import { startFakeE2b } from "../../sandboxes/e2b/testing/fake-e2b.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { type RunResult, runKit } from "../testing/run-kit.ts";

const fake = await startFakeE2b();
const toml = `
[agent]
sandbox = "e2b"
[sandbox.options]
upload = true
project = "shop"
api_url = "${fake.url}"
sandbox_url = "${fake.url}"
`;
const folder = await createTemporaryRepository({
  "kit.toml": toml,
  "a.txt": "one\n",
  ".gitignore": ".kit\n.env\n",
  ".env": "E2B_API_KEY=e2b_test\n",
});
afterAll(async () => {
  await fake.close();
  await folder[Symbol.asyncDispose]();
});

const kit = (...args: readonly string[]): Promise<RunResult> =>
  runKit(["sandboxes", ...args, "--env", ".env"], { cwd: folder.root });
const owner = { agent: "fixer", instance_id: "pr-42", session: "default", project_root: folder.root };
const options = { apiKey: "e2b_test", apiUrl: fake.url, sandboxUrl: fake.url, project: "shop", upload: true };

beforeAll(async () => {
  execFileSync("git", ["init", "-q"], { cwd: folder.root });
  expect((await kit("list")).stderr).toContain("This project has no machine at a vendor.");
  const sandbox = await e2b(options).open(owner);
  await sandbox.edit("a.txt", { old: "one", new: "two" });
  await sandbox.close();
});

test("machines are listed, and the changes of a session are shown, and applied on request", async () => {
  expect((await kit("list")).stdout).toMatch(/^e2b\/fake\S+\tpaused\tfixer\/pr-42\tdefault\tin use\t/);
  const { stdout } = await kit("diff", "fixer", "pr-42");
  expect(stdout).toContain("diff --git a/a.txt b/a.txt");
  expect(stdout).toContain("-one\n+two\n");
  const result = await kit("apply", "fixer", "pr-42");
  expect(result).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("--yes") });
  expect(await readFile(join(folder.root, "a.txt"), "utf8")).toBe("one\n");
  const applied = await kit("apply", "fixer", "pr-42", "--yes");
  expect(applied).toMatchObject({ exitCode: 0, stderr: expect.stringContaining("Applied to 1 file.") });
  expect(await readFile(join(folder.root, "a.txt"), "utf8")).toBe("two\n");
});

test("changes of files that decide what runs on this machine are applied only with an explicit option", async () => {
  const sandbox = await e2b(options).open(owner);
  await sandbox.writeFile("package.json", "{}\n");
  await sandbox.close();
  const refused = await kit("apply", "fixer", "pr-42", "--yes");
  expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("package.json") });
  expect(refused.stderr).toContain("--allow-protected");
});

test("an unknown machine is not found, and prune removes only machines that no session uses", async () => {
  const missing = await kit("diff", "fixer", "none");
  expect(missing).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("has no machine") });
  expect((await kit("prune", "--yes")).stderr).toContain("No machine to remove.");
  expect((await kit("prune", "--all")).stderr).toContain("--yes");
  expect(fake.machines.size).toBe(1);
  expect((await kit("prune", "--all", "--dry-run")).stderr).toContain("1 machine would be removed.");
  expect((await kit("prune", "--all", "--yes")).stderr).toContain("Removed 1 machine.");
  expect(fake.machines.size).toBe(0);
});
