import { rm } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { beforeAll, expect, test } from "vitest";
import { withoutIsolation } from "../../app/verify/testing/without-isolation.ts";
import { wallTest } from "../../sandboxes/host/wall/walled.suite.ts";
import { repositoryForTests } from "../../testing/repository-for-tests.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { beginProcess, type RunResult, runKit } from "../testing/run-kit.ts";

const repository = repositoryForTests({
  ".gitignore": ".kit\n",
  "AGENTS.md": "# Shop\n\n## Money\n\nWhole cents.\n\n## Tests\n\nBeside.\n\n## Words\n\nPlain.\n",
  "kit.toml": `[[guidelines.check]]
rule = "AGENTS.md#money"
files = "src/**"
run = "! grep -nHE '[0-9][.][0-9]' {files}"

[[guidelines.check]]
rule = "AGENTS.md#words"
files = "docs/**"
run = "no-such-program {files}"
timeout_seconds = 5
`,
  "src/a.js": "export const price = 100;\n",
  "docs/a.md": "# Shop\n",
});
beforeAll(async () => {
  await repository.init();
  await repository.commit("Begin", 1_700_000_000);
  await repository.write("src/b.js", "export const price = 9.5;\n");
});

const check = (...args: readonly string[]): Promise<RunResult> =>
  runKit(["guidelines", "check", ...args], { cwd: repository.root });

test("prints what is broken, with the lines, and the rules that nothing checks, and exits with 1", async () => {
  expect(await check("--since", "HEAD")).toEqual({
    exitCode: 1,
    stdout: `broken  AGENTS.md#money
  src/b.js:1: export const price = 9.5;
Nothing checks these rules:
  AGENTS.md#tests  Tests
`,
    stderr: "1 rule broken, 0 kept, 1 without a file to check; 1 rule without a check.\n",
  });
  expect((await check("src")).stdout).toContain("src/b.js:1:");
  expect(await check("src/a.js", "README.md")).toMatchObject({
    exitCode: 0,
    stdout: expect.stringMatching(/^kept {4}AGENTS\.md#money {2}1 file\n/),
  });
});

test("prints nothing but what is broken or failed if it is to be quiet", async () => {
  expect(await check("--since", "HEAD", "--quiet")).toEqual({
    exitCode: 1,
    stdout: "broken  AGENTS.md#money\n  src/b.js:1: export const price = 9.5;\n",
    stderr: "",
  });
  expect(await check("src/a.js", "--quiet")).toEqual({ exitCode: 0, stdout: "", stderr: "" });
});

test("says that a check failed, and annotates a change in GitHub Actions", async () => {
  const { exitCode, stdout } = await check();
  expect(exitCode).toBe(1);
  expect(stdout).toMatch(/failed {2}AGENTS\.md#words\n {2}It ended with exit code 127\.\n.*not found/);
  const github = await check("--format", "github");
  expect(github.stdout).toContain(
    "::error file=src/b.js,line=1,title=kit guidelines check%3A AGENTS.md#money broken::export",
  );
  expect(github.stdout).toContain(
    "::error file=AGENTS.md,line=11,title=kit guidelines check%3A AGENTS.md#words failed::",
  );
  expect(JSON.parse((await check("--json", "src/b.js")).stdout)).toMatchObject({
    checks: [{ end: "broken", findings: [{ path: "src/b.js", line: 1 }] }, { end: "skipped" }],
    unchecked: [{ name: "AGENTS.md#tests", line: 7 }],
  });
});

test("fits into a terminal of 80 columns", async () => {
  await repository.write("src/long.js", `export const price = 9.5; // ${"a word ".repeat(40)}\n`);
  const { stdout } = await runKit(["guidelines", "check", "src/long.js"], {
    cwd: repository.root,
    columns: 80,
  });
  await rm(join(repository.root, "src/long.js"));
  expect(Math.max(...stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
  expect(stdout).toContain("a word");
});

test("exits with 2 for a path outside of the project, an unknown revision and a rule that is not there", async () => {
  expect(await check("../x")).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("lies outside") });
  expect(await check("--since", "nowhere")).toMatchObject({ exitCode: 2 });
  const config = '[[guidelines.check]]\nrule = "AGENTS.md#mony"\nfiles = ["src/**"]\nrun = "true"\n';
  await repository.write("wrong.toml", config);
  expect(await check("--config", "wrong.toml")).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('no rule "AGENTS.md#mony" was found; did you mean AGENTS.md#money?'),
  });
  await repository.write("wrong.toml", config.replace("run = ", "runs = "));
  expect(await check("--config", "wrong.toml")).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining("guidelines.check[0]"),
  });
});

wallTest(
  "isolates the checks of a folder that its user has not trusted, and runs none without isolation",
  async () => {
    const config =
      '[sandbox]\nisolation = "off"\n[[guidelines.check]]\nrule = "AGENTS.md#money"\nfiles = "src/**"\nrun = "touch ran"\n';
    await repository.write("open.toml", config);
    const args = ["guidelines", "check", "--config", "open.toml", "--json"];
    const run = (env: Readonly<Record<string, string>>): Promise<RunResult> =>
      runKit(args, { cwd: repository.root, env });
    expect(JSON.parse((await run({ KIT_TRUST: "0" })).stdout)).toMatchObject({
      isolated: true,
      checks: [{ end: "broken", output: expect.stringContaining("Read-only file system") }],
    });
    const env = { KIT_TRUST: "0", ...withoutIsolation };
    const { stderr, ended } = beginProcess(args, { cwd: repository.root, env });
    expect(await text(stderr)).toContain(
      "The checks would run without isolation, and you have not trusted the code of this folder.",
    );
    expect(await ended).toBe(1);
    expect(JSON.parse((await run({ KIT_TRUST: "1" })).stdout)).toMatchObject({
      isolated: false,
      checks: [{ end: "kept" }],
    });
  },
);

test("does not call a rule kept because a configuration in code was not run", async () => {
  await using code = await createTemporaryRepository({ "kit.config.mjs": "export default {};\n" });
  expect(await runKit(["guidelines", "check"], { cwd: code.root, env: { KIT_TRUST: "0" } })).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining(
      "kit.config.mjs is code, and you have not trusted the code of this folder.",
    ),
  });
});
