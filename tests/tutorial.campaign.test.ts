import { execFile } from "node:child_process";
import { appendFile, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { repositoryRoot } from "../scripts/files.ts";
import { readMarkdownPage } from "../scripts/markdown-page.ts";
import { testFolder } from "../src/testing/test-folder.ts";

const run = promisify(execFile);
const folder = testFolder(afterAll);

// The project at the end of docs/tutorial.md: each fence that names a file is the content of that file.
beforeAll(async () => {
  await run(process.execPath, [join(repositoryRoot, "bin/kit.mjs"), "init", folder]);
  await mkdir(join(folder, "node_modules/@types"), { recursive: true });
  await symlink(repositoryRoot, join(folder, "node_modules/kit"));
  for (const name of ["zod", "@types/node"]) {
    await symlink(join(repositoryRoot, "node_modules", name), join(folder, "node_modules", name));
  }
  const { fences } = await readMarkdownPage(join(repositoryRoot, "docs/tutorial.md"));
  for (const { language, code } of fences) {
    const [, path] = /^\/\/ (\S+\.ts)\n/.exec(code) ?? [];
    if (language === "md") await appendFile(join(folder, "AGENTS.md"), `\n${code}`);
    if (path === undefined) continue;
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), code);
  }
  // Step 14 tells the reader to add it.
  const agent = join(folder, "src/agents/support.ts");
  const code = (await readFile(agent, "utf8")).replace("[orderStatus]", "[orderStatus, giveCredit]");
  await writeFile(agent, `import { giveCredit } from "../tools/give-credit.ts";\n${code}`);
});

test("the project of the tutorial passes its tests", async () => {
  const { NODE_OPTIONS: _, NODE_TEST_CONTEXT: __, ...env } = process.env;
  const { stdout } = await run(process.execPath, ["--test", "tests/**/*.test.ts"], { cwd: folder, env });
  expect(stdout).toMatch(/pass 6\b/);
  expect(stdout).toMatch(/fail 0\b/);
});

test("the project of the tutorial type-checks", async () => {
  const tsc = join(repositoryRoot, "node_modules/typescript/bin/tsc");
  const output = await run(process.execPath, [tsc, "-p", "."], { cwd: folder }).then(
    () => "",
    (error: { stdout?: string }) => error.stdout,
  );
  expect(output).toBe("");
});

test("the commands of step 8 do what the page says", async () => {
  const kit = (...words: string[]) =>
    run(process.execPath, [join(repositoryRoot, "bin/kit.mjs"), ...words], { cwd: folder });
  const { stdout } = await kit("run", "refund", "--payload", '{"order": "A17", "cents": 5000}');
  expect(JSON.parse(stdout)).toMatchObject({ refunded: true });
  await expect(kit("run", "refund", "--payload", '{"order": "A17"}')).rejects.toMatchObject({
    stderr: expect.stringContaining("payload.cents"),
  });
});
