import { symlinkSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AllowRule } from "../../protocol/approval.ts";
import type { Sandbox } from "../../sandboxes/contract.ts";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import { testFolder } from "../../testing/test-folder.ts";
import { type AllowedCall, allowChoices, isAllowed } from "./allow-rules.ts";

const root = testFolder(afterAll);
let files: Sandbox;
beforeAll(async () => {
  files = await local({ root }).open({
    agent: "mender",
    instance_id: "1",
    session: "default",
    project_root: root,
  });
  await files.writeFile("src/cart/total.ts", "export {};\n");
  await files.writeFile("secret/key.txt", "key\n");
  symlinkSync("../../secret", join(root, "src/cart/linked"));
});

const policy = { allowShell: true, allowWrite: true };

function callOf(tool: string, args: unknown, more: Partial<AllowedCall> = {}): AllowedCall {
  return { agent: "mender", tool, args, policy, sandbox: async () => files, ...more };
}

function bash(command: string, more: Partial<AllowedCall> = {}): AllowedCall {
  return callOf("bash", { command }, more);
}

const isCovered = (rule: Omit<AllowRule, "agent">, call: AllowedCall) => isAllowed([rule], call);

describe("the allow rules offered for a call", () => {
  test.each<[AllowedCall, readonly Partial<AllowRule>[]]>([
    [
      bash("git status --short"),
      [{ args: '{"command":"git status --short"}' }, { command: "git status" }, { command: "git" }],
    ],
    [bash("git commit -m 'x'"), [{ args: `{"command":"git commit -m 'x'"}` }, { command: "git commit" }]],
    [bash("npm test"), [{ args: '{"command":"npm test"}' }, { command: "npm test *" }]],
    [bash("npm run build"), [{ args: '{"command":"npm run build"}' }, { command: "npm run build *" }]],
    [bash("deploy staging"), [{ args: '{"command":"deploy staging"}' }, { command: "deploy staging *" }]],
    [bash("cat README.md"), [{ args: '{"command":"cat README.md"}' }, { command: "cat" }]],
    // Interpreters, launchers and commands that begin with an option: only this exact command.
    [bash("node -e 'x'"), [{ args: `{"command":"node -e 'x'"}` }]],
    [bash("env deploy now"), [{ args: '{"command":"env deploy now"}' }]],
    [bash("deploy --force"), [{ args: '{"command":"deploy --force"}' }]],
    [bash("./deploy now"), [{ args: '{"command":"./deploy now"}' }]],
    [
      callOf("write", { path: "src/cart/total.ts", content: "x" }),
      [{ path: "src/cart/total.ts" }, { path: "src/cart/" }],
    ],
    [callOf("edit", { path: "./readme.md", old: "a", new: "b" }), [{ path: "readme.md" }]],
    [callOf("refund", { order: 1 }), [{ args: '{"order":1}' }, {}]],
    [callOf("mcp_execute", { tool: "x" }), [{ args: '{"tool":"x"}' }]],
    [callOf("task", { prompt: "x" }), [{ args: '{"prompt":"x"}' }]],
  ])("%o", async (call, rules) => {
    expect(await allowChoices(call)).toEqual(
      rules.map((rule) => ({ tool: call.tool, agent: "mender", ...rule })),
    );
  });

  test.each<[AllowedCall, string]>([
    [bash("git push; rm -rf ~"), "policy denies"],
    [bash("ls", { policy: { allowShell: true, allowedCommands: ["git"] } }), "policy denies"],
    [bash("rm x", { policy: { allowShell: false } }), "policy denies"],
    [callOf("bash", { command: "ls", cwd: "../.." }), "leads out"],
    [callOf("write", { path: "../outside.txt", content: "" }), "lead out"],
    [callOf("write", { path: "/etc/passwd", content: "" }), "lead out"],
    [callOf("refund", { reason: "\ud800", more: "x".repeat(3_000) }), "every call|too long"],
  ])("%o is offered no rule if it is denied or leaves the workspace", async (call, why) => {
    const choices = await allowChoices(call);
    if (call.tool === "refund") expect(choices).toEqual([{ tool: "refund", agent: "mender" }]);
    else expect(choices).toMatch(new RegExp(why));
  });

  test("every offered rule matches its call, and no call of another agent or tool", async () => {
    const words = fc.constantFrom(
      "git",
      "status",
      "npm",
      "test",
      "-m",
      ";",
      "&&",
      "*",
      "?",
      "'",
      '"',
      "\n",
      "..",
      "$(x)",
      "\u202e",
      "~",
    );
    const args = fc.oneof(
      fc.record({ command: fc.array(words, { maxLength: 6 }).map((some) => some.join(" ")) }),
      fc.record({
        path: fc
          .array(fc.constantFrom("a", "..", ".", "", "*", "[x]", "\\", "~", "\n"), { maxLength: 4 })
          .map((some) => some.join("/")),
      }),
      fc.dictionary(fc.string({ maxLength: 5 }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 }),
    );
    await fc.assert(
      fc.asyncProperty(fc.constantFrom("bash", "write", "rm", "refund"), args, async (tool, given) => {
        const call = callOf(tool, given);
        const choices = await allowChoices(call);
        if (typeof choices === "string") return;
        for (const rule of choices) {
          expect(await isAllowed([rule], call)).toBe(true);
          expect(await isAllowed([rule], { ...call, agent: "other" })).toBe(false);
          expect(await isAllowed([rule], { ...call, tool: "other" })).toBe(false);
        }
      }),
      { numRuns: 150 },
    );
  });
});

describe("a rule for a command", () => {
  test.each([
    ["git status", "git status", true],
    ["git status", "git  'status' --short", true],
    ["git status", "git push", false],
    ["git status", "git status; git push", false],
    ["git status", "git status && rm -rf .", false],
    ["git status", "git status\nrm -rf .", false],
    ["git status", "git status $(touch x)", false],
    ["git status", "git status > .git/config", false],
    ["git status", "git -c core.fsmonitor=./x status", false],
    ["git status", "GIT_DIR=x git status", false],
    ["git status", "./git status", false],
    ["git status", "git -C ../other status", false],
    ["git diff", "git diff --ext-diff", false],
    ["git diff", "git diff --output=x", false],
    ["git", "git commit -m x", false],
    ["cat", "cat /etc/passwd", false],
    ["cat", "cat ../../x", false],
    ["cat", "cat src/cart/total.ts", true],
    ["npm test *", "npm test", true],
    ["npm test *", "npm test -- --watch", true],
    ["npm test *", "npm test --script-shell=./x", false],
    ["npm test *", "npm testing", false],
    ["deploy staging *", "deploy staging --dry", true],
    ["deploy staging *", "deploy production", false],
    ["deploy staging *", "deploy 'staging --dry'", false],
    ["deploy staging *", "deploy \u202estaging", false],
  ])("the rule %j matches the line %j: %j", async (command, line, expected) => {
    expect(await isCovered({ tool: "bash", command }, bash(line))).toBe(expected);
  });

  test("matches in its working folder only", async () => {
    const rule = { tool: "bash", command: "npm test *" };
    expect(await isCovered(rule, callOf("bash", { command: "npm test", cwd: "src" }))).toBe(false);
    expect(await isCovered(rule, bash("npm test", { sandbox: async () => files.at("src") }))).toBe(false);
    expect(
      await isCovered({ ...rule, cwd: "src" }, callOf("bash", { command: "npm test", cwd: "src" })),
    ).toBe(true);
    expect(await isCovered({ ...rule, cwd: "src" }, bash("npm test"))).toBe(false);
  });

  test("does not let an agent without allowWrite run a command that writes", async () => {
    const call = bash("git commit -m x", { policy: { allowShell: true } });
    expect(await isCovered({ tool: "bash", command: "git commit" }, call)).toBe(false);
  });
});

describe("a rule for a path", () => {
  const folder = { tool: "write", path: "src/cart/" };

  test.each([
    ["src/cart/total.ts", true],
    ["./src/cart/new/deep.ts", true],
    ["src/cart/../../secret/key.txt", false],
    ["src/cart/./x", false],
    ["src/cart//x", false],
    ["src/cart", false],
    ["src/cartoon.ts", false],
    ["src\\cart\\x", false],
    ["src/cart/linked/key.txt", false],
    ["src/cart/linked", false],
    ["/src/cart/x", false],
    ["~/src/cart/x", false],
  ])("src/cart/ matches the path %j: %j", async (path, expected) => {
    expect(await isCovered(folder, callOf("write", { path, content: "" }))).toBe(expected);
  });

  test("is no pattern, and is relative to the workspace, not to the working folder", async () => {
    const write = (path: string, more = {}) => callOf("write", { path, content: "" }, more);
    expect(await isCovered({ tool: "write", path: "src/*" }, write("src/x"))).toBe(false);
    expect(await isCovered({ tool: "write", path: "src/*" }, write("src/*"))).toBe(true);
    expect(await isCovered({ tool: "write", path: "[ab].ts" }, write("a.ts"))).toBe(false);
    const inSource = { sandbox: async () => files.at("src") };
    expect(await isCovered(folder, write("cart/x", inSource))).toBe(true);
    expect(await isCovered(folder, write("src/cart/x", inSource))).toBe(false);
  });

  test("does not match a tool that uses more than its path", async () => {
    expect(
      await isCovered({ tool: "grep", path: "src/" }, callOf("grep", { path: "src/x", pattern: "x" })),
    ).toBe(false);
    expect(await isCovered({ tool: "move", path: "src/" }, callOf("move", { path: "src/x", to: "y" }))).toBe(
      false,
    );
  });
});

test("a rule with arguments matches exactly these arguments, in any order of their keys", async () => {
  const rule = { tool: "refund", args: '{"order":1,"deep":{"a":1,"b":[1,2]}}' };
  expect(await isCovered(rule, callOf("refund", { deep: { b: [1, 2], a: 1 }, order: 1 }))).toBe(true);
  for (const args of [
    { order: 1 },
    { order: "1", deep: { a: 1, b: [1, 2] } },
    { order: 1, deep: { a: 1, b: [2, 1] } },
    null,
  ])
    expect(await isCovered(rule, callOf("refund", args))).toBe(false);
  // JSON has no Infinity: `null` in the request would be another value.
  expect(
    await isCovered({ tool: "refund", args: '{"n":null}' }, callOf("refund", { n: Number("1e999") })),
  ).toBe(false);
  expect(await isCovered({ tool: "refund", args: "not JSON" }, callOf("refund", {}))).toBe(false);
});
