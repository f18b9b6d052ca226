import { execFile } from "node:child_process";
import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { repositoryRoot } from "../scripts/files.ts";
import { campaignTest } from "../src/testing/campaign.suite.ts";
import { testFolder } from "../src/testing/test-folder.ts";

const run = promisify(execFile);
const folder = testFolder(afterAll);

// The result of `npm install`: kit is a link to its folder, and package.json has a `file:` dependency.
beforeAll(async () => {
  await run(process.execPath, [join(repositoryRoot, "bin/kit.mjs"), "init", folder]);
  await mkdir(join(folder, "node_modules/@types"), { recursive: true });
  await symlink(repositoryRoot, join(folder, "node_modules/kit"));
  await symlink(join(repositoryRoot, "node_modules/@types/node"), join(folder, "node_modules/@types/node"));
});

test("a new project passes its own tests", async () => {
  const { NODE_OPTIONS: _, NODE_TEST_CONTEXT: __, ...env } = process.env;
  const { stdout } = await run(process.execPath, ["--test", "tests/**/*.test.ts"], { cwd: folder, env });
  expect(stdout).toMatch(/pass 2\b/);
  expect(stdout).toMatch(/fail 0\b/);
});

campaignTest("all generated files type-check", async () => {
  const tsc = join(repositoryRoot, "node_modules/typescript/bin/tsc");
  const output = await run(process.execPath, [tsc, "-p", "."], { cwd: folder }).then(
    () => "",
    (error: { stdout?: string }) => error.stdout,
  );
  expect(output).toBe("");
});
