import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { testFolder } from "../../testing/test-folder.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import {
  deepProtectedPaths,
  isGrantedPath,
  isProtectedPath,
  isSecretFile,
  type PathChange,
} from "./protected-paths.ts";

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
  ["packages/api/binding.gyp", {}, true],
  ["packages/api/.cargo/config.toml", {}, true],
  ["packages/api/.cargo", removes, true],
  ["packages/api/commitlint.config.mjs", {}, true],
  ["packages/api/.rvmrc", {}, true],
  [".overcommit.yml", {}, true],
  [".lfsconfig", {}, true],
  ["webhooks/a.ts", {}, false],
  ["packages/api/src/agents/a.ts", {}, false],
  ["src/agents.ts", {}, false],
  ["my.kit/a.ts", {}, false],
  ["src", removes, true],
  ["src/app", removes, false],
  // A workspace that contains the project.
  ["Team/Shop/src/agents/a.ts", around, true],
  ["team/shop/workflows/a.ts", around, true],
  ["Team/Shop/src/app.ts", around, false],
  ["Team/Shopping/agents/a.ts", around, false],
  ["Team", { ...around, ...removes }, true],
  ["Team/Shop", { ...around, ...removes }, true],
  ["Team/Shop/src", { ...around, ...removes }, true],
  ["Team/Shop/docs", { ...around, ...removes }, false],
  ["Team", around, false],
  // A workspace inside the project.
  ["agents/a.ts", below, true],
  ["app.ts", below, false],
  ["a.ts", { ...below, hostRoot: "/repos/Team/Shop/src/agents" }, true],
  ["a.ts", { hostRoot: "C:\\Shop\\agents", projectRoot: "c:\\shop" }, true],
  // A workspace outside the project.
  ["agents/a.ts", elsewhere, true],
  ["a.ts", elsewhere, false],
  ["a", { ...elsewhere, ...removes }, false],
])("the path %s with %j is protected: %s", (path, change, isProtected) => {
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
  ...[".buildkite/pipeline.yml", ".woodpecker/ci.yml", ".teamcity/settings.kts", ".idea/workspace.xml"],
  ...[".codex/config.toml", ".claude/hooks/a.sh", ".kiro/hooks/a.kiro.hook", ".kiro/settings/mcp.json"],
  ...[".yarn/releases/yarn.cjs", ".yarn/plugins/a.cjs", ".github/actions", ".gemini/settings.json"],
  ...["npm-shrinkwrap.json", "pnpm-workspace.yaml", "bun.lock", "bunfig.toml", "deno.json", "deno.jsonc"],
  ...["deno.lock", ".yarnrc", "tsconfig-esm.json", "jsconfig.json", ".gitattributes", ".gitconfig"],
  ...[".cursor/hooks.json", ".claude/settings.json", ".lefthook-local.yaml", ".lintstagedrc.json"],
  ...["lefthook.toml", "lefthook-local.json", ".lefthook.jsonc", ".huskyrc", ".huskyrc.json", ".pnp.cjs"],
  ...[
    ".pnp.loader.mjs",
    "lint-staged.config.js",
    ".simple-git-hooks.cjs",
    "simple-git-hooks.json",
    ".cirrus.yml",
  ],
  ...["package.yaml", "packages/a/package.json5", ".devcontainer.json", ".forgejo/workflows/a.yml"],
  ...[
    ".gitea/workflows/a.yml",
    "x.code-workspace",
    ".code-workspace",
    "a.sublime-project",
    ".zed/settings.json",
  ],
  ...[
    ".zed/tasks.json",
    ".fleet/run.json",
    ".nova/Tasks/a.json",
    ".vim/coc-settings.json",
    ".nvim.lua",
    ".exrc",
  ],
  ...[
    ".dir-locals.el",
    "mise.toml",
    ".mise.toml",
    "mise.local.toml",
    ".config/mise/config.toml",
    ".tool-versions",
  ],
  ...[
    ".helix/languages.toml",
    ".gdbinit",
    ".travis.yml",
    "appveyor.yml",
    ".appveyor.yaml",
    ".drone.yml",
    "cloudbuild.yaml",
    "buildspec.yml",
  ],
  ...[
    ".claude/commands/a.md",
    "packages/api/.claude/agents/a.md",
    ".claude/skills/a/SKILL.md",
    ".github/skills/a/SKILL.md",
  ],
  ...[
    ".aider.conf.yml",
    "opencode.json",
    ".opencode/opencode.jsonc",
    ".opencode/plugin/a.ts",
    ".roo/mcp.json",
  ],
  ...[".windsurf/hooks.json", ".continue/config.yaml", ".continue/mcpServers/a.yaml"],
  ...[
    "eslint.config.mjs",
    "packages/api/.eslintrc.json",
    ".eslintrc",
    "prettier.config.js",
    ".prettierrc.cjs",
  ],
  ...[".stylelintrc", "stylelint.config.mjs", ".venv/bin/python", "api/.venv/lib/a.pth", "venv/bin/activate"],
  ...[".direnv/flake-profile-a.rc", ".yarn/sdks/eslint/lib/api.js"],
  ...["api/.hg/hgrc", ".hg/sharedpath", ".sl/config", ".jj/repo/config.toml"],
])("%s is protected", (path) => {
  expect(isProtectedPath({ cwd: "", path }, [])).toBe(true);
});

test.each([
  ...["README.md", ".github/CODEOWNERS", ".github/copilot-instructions.md", ".claude/rules/a.md", "Makefile"],
  ...["src/package.json.ts", "my-tsconfig.json", "src/husky/a.ts", ".env.example", "src/.environment.ts"],
  ...["promise.toml", "src/lefthook.ts", "docs/huskyrc", "zed/settings.json", "src/mise.ts"],
  ...["package.jsonc", "src/vscode/tasks.json", "docs/ci/run", "src/app.ts", ".gitignore"],
  ...[".cursor/rules/a.mdc", ".windsurf/rules/a.md", ".roo/rules/a.md", ".continue/rules/a.md"],
  ...[".hg/store/a", ".jj/repo/store/a", ".yarn/cache/a.zip"],
  ...["vite.config.ts", ".prettierignore", ".eslintignore", "src/venv/a.py", "src/eslint.config"],
])("%s is not protected", (path) => {
  expect(isProtectedPath({ cwd: "", path }, [])).toBe(false);
});

test("a folder with protected files cannot be removed, but new files can be written to it", () => {
  for (const path of [
    ".github",
    "packages/api/.claude",
    ".cursor",
    ".kiro",
    ".gemini",
    ".yarn",
    ".zed",
    ".gitea",
    ".windsurf",
    ".roo",
    ".continue",
    ".opencode",
    ".hg",
    ".jj/repo",
  ]) {
    expect(isProtectedPath({ cwd: "", path, removes: true }, [])).toBe(true);
    expect(isProtectedPath({ cwd: "", path }, [])).toBe(false);
  }
});

test("a path whose longer form would be protected can be removed", () => {
  for (const path of ["my.github", ".github/CODEOWNERS", ".yarn-cache"]) {
    expect(isProtectedPath({ cwd: "", path, removes: true }, []), path).toBe(false);
  }
});

test("a granted path and everything below it can be changed, but nothing next to it", () => {
  const granted = ["./packages/api/package.json", "src/agents/"];
  const may = (path: string, cwd = ""): boolean => !isProtectedPath({ cwd, path }, granted);
  expect(may("packages/api/package.json")).toBe(true);
  expect(may("package.json", "packages/api")).toBe(true);
  expect(may("src/agents")).toBe(true);
  expect(may("src/agents/deep/a.ts")).toBe(true);
  expect(may("package.json")).toBe(false);
  expect(may("src/agents/../workflows/a.ts")).toBe(false);
  expect(may("src/agents-of-others/.env")).toBe(false);
  expect(may("other/src/agents/.env")).toBe(false);
  expect(isGrantedPath("src", granted)).toBe(false);
  expect(isGrantedPath("srcagents", granted)).toBe(false);
});

test("a file that the process has loaded is protected by its real path", () => {
  const asked: unknown[] = [];
  const isLoaded = (file: string, removes: boolean): boolean => {
    asked.push([file, removes]);
    return file === "/repos/shop/src/tool.ts";
  };
  const change = { cwd: "src", hostRoot: "/repos/shop", isLoaded };
  expect(isProtectedPath({ ...change, path: "tool.ts" }, [])).toBe(true);
  expect(isProtectedPath({ ...change, path: "other.ts", removes: true }, [])).toBe(false);
  expect(asked).toEqual([
    ["/repos/shop/src/tool.ts", false],
    ["/repos/shop/src/other.ts", true],
  ]);
  expect(isProtectedPath({ ...change, path: "tool.ts", hostRoot: undefined }, [])).toBe(false);
});

test("a project is found also if the workspace is the root of the disk", () => {
  const whole = { cwd: "", hostRoot: "/", projectRoot: "/repos/shop" };
  expect(isProtectedPath({ ...whole, path: "repos/shop/agents/a.ts" }, [])).toBe(true);
  expect(isProtectedPath({ ...whole, path: ".", removes: true }, [])).toBe(true);
  expect(isProtectedPath({ ...whole, path: "repos/shop.md", removes: true }, [])).toBe(false);
});

test("the list for commands has protected paths and no patterns", () => {
  expect(deepProtectedPaths).toEqual(
    expect.arrayContaining([
      ...[".github/workflows", ".claude/hooks", ".kiro/settings", ".yarn/releases", ".cursor/mcp.json"],
      ...["src/agents", "src/workflows", "src/webhooks", "agents", "workflows", "node_modules/.bin"],
      ...[".claude/settings.json", ".claude/settings.local.json"],
    ]),
  );
  for (const path of deepProtectedPaths) {
    expect(path).not.toContain("*");
    expect([path, isProtectedPath({ cwd: "", path }, [])]).toEqual([path, true]);
  }
  // These are looked up in the root: `.git` and `node_modules` are protected only in part.
  for (const path of [".git", "node_modules", "package.json"]) expect(deepProtectedPaths).not.toContain(path);
});

test.each([
  [".env", true],
  ["packages/api/.ENV.local", true],
  [".envrc", true],
  [".env.example", false],
  [".env.local.sample", false],
  [".env.template", false],
  [".env.dist", false],
  [".env.defaults", false],
  [".env.sample.local", true],
  ["my.env", false],
  ["src/env.ts", false],
  [".environment", false],
])("%s is a secret file: %s", (path, isSecret) => {
  expect(isSecretFile(path)).toBe(isSecret);
});

test("a model cannot change the agents of its project from another folder", async () => {
  const base = testFolder(onTestFinished);
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
