import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { testFolder } from "../../testing/test-folder.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import type { AgentPolicy, AgentProfile } from "../define/agent-profile.ts";
import { runUnwalled } from "./run-unwalled.suite.ts";

let base: string;
let root: string;

beforeEach(() => {
  base = testFolder(onTestFinished);
  root = join(base, "workspace");
  write("a.txt", "alpha\n");
  write("plain/deep/a.txt", "alpha\n");
  write("plain/.env.local", "KEY=SECRET\n");
  write("pkg/lib/package.json", "{}\n");
  write("editor/settings/.vscode/tasks.json", "{}\n");
  write("checkout/.git/HEAD", "ref: refs/heads/main\n");
  write("flows/workflows/ci.yml", "on: push\n");
  write("code/agents/a.ts", "x\n");
  write(".github/CODEOWNERS", "* @me\n");
  write("src/app.ts", "x\n");
  write("bare/HEAD", "ref: refs/heads/main\n");
  write("bare/objects/.keep", "");
  write("bare/refs/.keep", "");
});

function write(path: string, content: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), content);
}

const files = (): readonly string[] => readdirSync(root, { recursive: true }).map(String).sort();

/** Runs a command without isolation; returns what it printed, or the reason of its refusal. */
async function run(command: string, policy: AgentPolicy = {}): Promise<string> {
  const result = await runUnwalled(root, command, { policy });
  return typeof result === "string" ? `refused: ${result}` : result.stdout + result.stderr;
}

test.each([
  "cp -r pkg new",
  "cp -r pkg/. plain",
  "cp -a a.txt pkg plain",
  "cp -r editor plain/deep",
  "cp -r checkout new",
  "cp -r flows/workflows .github",
  "cp -r flows/. .github",
  "cp -r code/. src",
  "cp -r code/agents src",
  "cp -r bare new",
  "cp -r link/ new",
  "mv pkg new",
  "mv editor plain",
  "mv checkout plain/deep",
  "mv flows/workflows .github",
  "mv code/agents src",
  "mv bare new",
  "mv plain new",
  "rm -r pkg",
  "rm -rf a.txt editor",
  "rm -r checkout",
  "rm -r bare",
  "rm -r plain",
  "git mv pkg new",
  "git rm -rf pkg",
])("%s is refused, because of what is below the folder", async (line) => {
  symlinkSync("pkg", join(root, "link"));
  if (line.startsWith("git")) {
    execFileSync("git", ["init", "-q"], { cwd: root });
    execFileSync("git", ["add", "pkg"], { cwd: root });
  }
  const before = files();
  expect(await run(line)).toMatch(/^refused: .*(?:protected|repository)/);
  expect(files()).toEqual(before);
});

test("folders without protected files are copied, moved and removed, and so are links", async () => {
  rmSync(join(root, "plain/.env.local"));
  symlinkSync("../pkg", join(root, "plain/link"));
  for (const line of [
    "cp -r plain new",
    "mv plain other",
    "mv other new",
    "rm -r new/other new",
    "rm -rf missing",
  ])
    expect(await run(line), line).toBe("");
  expect(existsSync(join(root, "pkg/lib/package.json"))).toBe(true);
  symlinkSync("pkg", join(root, "link"));
  expect(await run("mv link elsewhere")).toBe("");
  expect(await run("rm -r elsewhere")).toBe("");
  expect(existsSync(join(root, "pkg/lib/package.json"))).toBe(true);
});

test("a copy of a file of secrets is a file of secrets", async () => {
  expect(await run("cp -r plain new")).toBe("");
  expect(await run("cat new/.env.local")).toMatch(/^refused: .*secrets/);
});

test("grants of all protected paths below allow it", async () => {
  const granted = { allowProtectedPaths: ["pkg/lib/package.json", "new/lib/package.json", "bare"] };
  expect(await run("cp -r pkg new", granted)).toBe("");
  expect(await run("rm -r pkg bare", granted)).toBe("");
  expect(await run("mv new newer", granted)).toMatch(/^refused: .*newer\/lib\/package\.json/);
});

test("a folder that cannot be looked at is not moved", async () => {
  execFileSync("sh", [
    "-c",
    `mkdir -p "$1/odd/$(printf 'x\\377')" && echo {} > "$1/odd/$(printf 'x\\377')/package.json"`,
    "sh",
    root,
  ]);
  expect(await run("mv odd new")).toMatch(/^refused: .*look/);
});

/** Calls a file tool; returns what the model sees. */
async function call(name: string, input: object, profile: AgentProfile = {}): Promise<string> {
  const model = createScriptedModel((_call, index) =>
    index === 0 ? { toolCalls: [{ id: "c1", name, input }] } : { text: "Done." },
  );
  const agent = createTestAgent(model, { allowWrite: true, ...profile }, { sandbox: local({ root }) });
  const { messages } = await agent.session().prompt("go");
  return JSON.stringify(messages.filter(({ role }) => role === "tool"));
}

test("the tool that removes files removes no folder with protected ones", async () => {
  for (const path of ["pkg", "checkout", "bare"])
    expect(await call("rm", { path, recursive: true })).toContain("is protected");
  symlinkSync("../pkg", join(root, "src/link"));
  for (const path of ["src/link", "flows"])
    expect(await call("rm", { path, recursive: true })).toContain("Removed");
  expect(existsSync(join(root, "pkg/lib/package.json"))).toBe(true);
  expect(await call("rm", { path: "pkg", recursive: true }, { allowProtectedPaths: ["pkg"] })).toContain(
    "Removed",
  );
});
