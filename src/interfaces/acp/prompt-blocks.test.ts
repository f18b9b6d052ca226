import type { ContentBlock } from "@agentclientprotocol/sdk";
import { expect, test } from "vitest";
import { commandContent, describeCall } from "./call-view.ts";
import { toOptions, toVerdict } from "./permission.ts";
import { findCommand, findSpecCommand, toCommands, toEditorInput } from "./prompt-blocks.ts";
import { toConfigOptions, withChoice } from "./session-settings.ts";

test("blocks of a prompt become a text with paths of the project, images and files", () => {
  const blocks: ContentBlock[] = [
    { type: "text", text: "Look at " },
    { type: "resource_link", name: "a b.ts", uri: "file:///project/src/a%20b.ts" },
    { type: "resource_link", name: "page", uri: "https://example.org/x" },
    { type: "resource", resource: { uri: "file:///elsewhere/c.ts", text: "const c = 1;" } },
    { type: "image", data: "aGk=", mimeType: "image/png" },
    {
      type: "resource",
      resource: { uri: "file:///project/d.pdf", blob: "aGk=", mimeType: "application/pdf" },
    },
  ];
  expect(toEditorInput(blocks, "/project")).toEqual({
    text: 'Look at [a b.ts](src/a b.ts)[page](https://example.org/x)\n<file path="/elsewhere/c.ts">\nconst c = 1;\n</file>\n',
    images: [{ data: "aGk=", media_type: "image/png" }],
    files: [{ data: "aGk=", media_type: "application/pdf" }],
  });
  expect(toEditorInput([{ type: "image", data: "aGk=", mimeType: "image/png" }], "/p").text).not.toBe("");
  const audio: ContentBlock = { type: "audio", data: "aGk=", mimeType: "audio/wav" };
  expect(() => toEditorInput([audio], "/p")).toThrow("no audio");
  // A path that is no encoded text stays as it is.
  const odd: ContentBlock = { type: "resource_link", name: "odd", uri: "file:///project/%E0%A4%A" };
  expect(toEditorInput([odd], "/project").text).toBe("[odd](file:///project/%E0%A4%A)");
});

test("a prompt that begins with the name of a skill calls it, with JSON, its only property or the words", () => {
  const file = { type: "object", properties: { file: { type: "string" } } };
  const skills = [
    { name: "tri", description: "" },
    { name: "triage", description: "Sorts." },
    { name: "explain", description: "Explains.", inputSchema: file },
  ];
  const called = (text: string) => {
    const found = findCommand(text, skills);
    return found && [found.skill.name, found.args];
  };
  expect(called("/triage")).toEqual(["triage", undefined]);
  expect(called("/triage\nthe new ones")).toEqual(["triage", { input: "the new ones" }]);
  expect(called("/explain src/a.ts")).toEqual(["explain", { file: "src/a.ts" }]);
  expect(called('/explain {"file": "b.ts"}')).toEqual(["explain", { file: "b.ts" }]);
  expect(called("/explain {broken")).toEqual(["explain", { file: "{broken" }]);
  expect(called("/triages")).toBeUndefined();
  expect(called(" /triage")).toBeUndefined();
  expect(called("/usr/bin is a path")).toBeUndefined();
  expect(toCommands(skills)[2]).toEqual({
    name: "explain",
    description: "Explains.",
    input: { hint: "file" },
  });
  expect(toCommands(skills)[0]?.description).toBe("tri");
});

test("an answer is a yes only if it is one of the offered ones", () => {
  const rule = { tool: "write", path: "a.md" };
  const choices = { choices: [{ rule, summary: "write for a.md", toml: "" }] };
  expect(toOptions(choices).map(({ optionId, kind }) => [optionId, kind])).toEqual([
    ["allow", "allow_once"],
    ["always-0", "allow_always"],
    ["deny", "reject_once"],
  ]);
  expect(toOptions({ ...choices, problem: "no file" })).toHaveLength(2);
  const verdict = (optionId: string, problem?: string) =>
    toVerdict({ outcome: "selected", optionId }, problem === undefined ? choices : { ...choices, problem });
  expect(verdict("allow")).toEqual({ approved: true });
  expect(verdict("always-0")).toEqual({ approved: true, rule });
  for (const answer of ["deny", "always-1", "always-", "always-0 ", "Allow", "", "__proto__"])
    expect(verdict(answer), answer).toEqual({ approved: false });
  expect(verdict("always-0", "no file")).toEqual({ approved: false });
  expect(toVerdict({ outcome: "cancelled" }, choices)).toEqual({ approved: false });
  expect(toVerdict(undefined, choices)).toEqual({ approved: false });
});

test("a session takes the models and the levels of thinking that were offered, and no other value", () => {
  const models = ["local/a", "local/b"];
  const chosen = withChoice({}, { configId: "model", value: "local/b" }, models);
  const both = withChoice(chosen, { configId: "thinking", value: "high" }, models);
  expect(both).toEqual({ model: "local/b", thinkingLevel: "high" });
  expect(toConfigOptions(both, models)).toMatchObject([
    { currentValue: "local/b" },
    { currentValue: "high" },
  ]);
  expect(withChoice(both, { configId: "model", value: "default" }, models)).toEqual({
    thinkingLevel: "high",
  });
  expect(withChoice(both, { configId: "thinking", value: "default" }, models)).toEqual({ model: "local/b" });
  for (const [configId, value] of [
    ["model", "local/c"],
    ["model", "high"],
    ["thinking", "local/a"],
    ["mode", "default"],
    ["model", true],
  ] as const)
    expect(() => withChoice({}, { configId, value } as { configId: string; value: string }, models)).toThrow(
      "no option",
    );
});

test("a question about a command shows the command, and what is cut or hidden in it", () => {
  const title = (tool: string, args: unknown) => describeCall({ tool, args }, "/project").title;
  expect(title("bash", { cwd: "docs", command: "npm test" })).toBe("npm test");
  const long = `echo ${"x".repeat(300)}; rm -rf .`;
  expect(title("bash", { command: long })).toBe(`${long.slice(0, 200)}…`);
  expect(commandContent({ tool: "bash", args: { command: `${long}\n\u001b[2K\u202e` } })).toEqual({
    type: "content",
    content: { type: "text", text: `${long}\n\\u001b[2K\\u202e` },
  });
  expect(title("write", { path: "a\u202emd.\u001b[2K" })).toBe("write a\\u202emd.\\u001b[2K");
  const choices = { choices: [{ rule: { tool: "bash" }, summary: "git\u202e\u0007", toml: "" }] };
  expect(toOptions(choices)[1]?.name).toBe("Always allow: git\\u202e\\u0007");
});

test("'/spec' is a command of kit, unless a skill has the name", () => {
  const skill = { name: "spec", description: "Mine." };
  expect(toCommands([]).map(({ name }) => name)).toEqual(["spec"]);
  expect(toCommands([skill])).toMatchObject([{ name: "spec", description: "Mine." }]);
  expect(findSpecCommand("/spec", [])).toBe("");
  expect(findSpecCommand("/spec checkout 1.2\n", [])).toBe("checkout 1.2");
  for (const text of ["/specs checkout", "see /spec checkout", "spec checkout"])
    expect(findSpecCommand(text, [])).toBeUndefined();
  expect(findSpecCommand("/spec checkout", [skill])).toBeUndefined();
});
