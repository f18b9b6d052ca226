import { mkdir, mkdtemp, readdir, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import { isProtectedPath, isSecretFile, type PathChange } from "./protected-paths.ts";

const around = { hostRoot: "/repos", projectRoot: "/repos/Team/Shop" };
const below = { hostRoot: "/repos/Team/Shop/src", projectRoot: "/repos/Team/Shop" };
const elsewhere = { hostRoot: "/other", projectRoot: "/repos/Team/Shop" };
const removes = { removes: true };

test.each<readonly [string, Partial<PathChange>, boolean]>([
  ["src/agents/a.ts", {}, true],
  ["Agents/a.ts", {}, true],
  ["packages/api/kit.toml", {}, true],
  ["packages/api/.kit/sessions.db", {}, true],
  ["packages/api/.agents/roles/a.md", {}, true],
  ["sub/.git/config", {}, true],
  ["sub/.GIT/config", {}, true],
  [".g\u200cit/hooks/pre-commit", {}, true],
  [".\u212ait/sessions.db", {}, true],
  ["src/agent\u017f/a.ts", {}, true],
  ["src/webhooks/a.ts", {}, true],
  ["webhooks/a.ts", {}, false],
  ["packages/api/src/agents/a.ts", {}, false],
  ["src/agents.ts", {}, false],
  ["my.kit/a.ts", {}, false],
  ["src", removes, true],
  ["src/app", removes, false],
  // A workspace around the project.
  ["Team/Shop/src/agents/a.ts", around, true],
  ["team/shop/workflows/a.ts", around, true],
  ["Team/Shop/src/app.ts", around, false],
  ["Team/Shopping/agents/a.ts", around, false],
  ["Team", { ...around, ...removes }, true],
  ["Team/Shop", { ...around, ...removes }, true],
  ["Team/Shop/src", { ...around, ...removes }, true],
  ["Team/Shop/docs", { ...around, ...removes }, false],
  ["Team", around, false],
  // A workspace below it.
  ["agents/a.ts", below, true],
  ["app.ts", below, false],
  ["a.ts", { ...below, hostRoot: "/repos/Team/Shop/src/agents" }, true],
  ["a.ts", { hostRoot: "C:\\Shop\\agents", projectRoot: "c:\\shop" }, true],
  // A workspace of its own.
  ["agents/a.ts", elsewhere, true],
  ["a.ts", elsewhere, false],
  ["a", { ...elsewhere, ...removes }, false],
])("%s, %j: %s", (path, change, isProtected) => {
  expect(isProtectedPath({ cwd: "", path, ...change }, [])).toBe(isProtected);
});

test.each([
  ...[
    "package.json",
    "packages/api/package.json",
    "package-lock.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    "bun.lockb",
  ],
  ...[
    "tsconfig.json",
    "tsconfig.build.json",
    "packages/api/tsconfig.json",
    ".npmrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
  ],
  ...["node_modules/zod/index.js", "src/lib/node_modules/zod/index.js", "Node_Modules/.bin/tsc"],
  ...[".husky/pre-commit", ".githooks/pre-push", ".pre-commit-config.yaml", "lefthook.yml", ".gitmodules"],
  ...[
    ".github/workflows/ci.yml",
    ".GitHub/Workflows/new.yml",
    ".github/actions/x/action.yml",
    ".gitlab-ci.yml",
  ],
  ...["Jenkinsfile", ".circleci/config.yml", ".ci/run", "azure-pipelines-2.yml", "bitbucket-pipelines.yml"],
  ...[".vscode/tasks.json", ".devcontainer/devcontainer.json", ".mcp.json", ".claude/settings.local.json"],
  ...[".cursor/mcp.json", ".env", ".env.local", ".envrc", "packages/api/.env.production", "kit.config.mts"],
])("%s is protected", (path) => {
  expect(isProtectedPath({ cwd: "", path }, [])).toBe(true);
});

test.each([
  ...["README.md", ".github/CODEOWNERS", ".github/copilot-instructions.md", ".claude/rules/a.md", "Makefile"],
  ...["src/package.json.ts", "my-tsconfig.json", "src/husky/a.ts", ".env.example", "src/.environment.ts"],
  ...["package.jsonc", "src/vscode/tasks.json", "docs/ci/run", "src/app.ts", ".gitignore"],
])("%s is not", (path) => {
  expect(isProtectedPath({ cwd: "", path }, [])).toBe(false);
});

test("a folder that holds protected files is not removed, and may be written into", () => {
  for (const path of [".github", "packages/api/.claude"]) {
    expect(isProtectedPath({ cwd: "", path, removes: true }, [])).toBe(true);
    expect(isProtectedPath({ cwd: "", path }, [])).toBe(false);
  }
});

test.each([
  [".env", true],
  ["packages/api/.ENV.local", true],
  [".envrc", true],
  [".env.example", false],
  [".env.local.sample", false],
  ["src/env.ts", false],
  [".environment", false],
])("%s is a file of secrets: %s", (path, isSecret) => {
  expect(isSecretFile(path)).toBe(isSecret);
});

test("a model that works around its project changes none of the project's agents", async () => {
  const base = await realpath(await mkdtemp(join(tmpdir(), "kit-protected-")));
  onTestFinished(() => rm(base, { recursive: true }));
  const project = join(base, "shop");
  await mkdir(project);
  const model = createScriptedModel(({ prompt }) =>
    prompt.at(-1)?.role === "tool"
      ? { text: "Done." }
      : {
          toolCalls: [
            { name: "write", input: { path: "shop/src/agents/a.ts", content: "x" } },
            { name: "rm", input: { path: "shop", recursive: true } },
            { name: "write", input: { path: "shop/a.ts", content: "x" } },
          ],
        },
  );
  const profile = { sandbox: local({ root: base }), allowWrite: true };
  await createTestAgent(model, profile, { projectRoot: project }).session().prompt("go");
  expect(await readdir(base, { recursive: true })).toEqual(["shop", "shop/a.ts"]);
});
