import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { methods } from "@agentclientprotocol/sdk";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  choose,
  createEditorFolder,
  type Editor,
  type EditorFolder,
  openEditor,
} from "../acp/testing/open-editor.ts";

const loud = `console.log("the module of the agent prints");
process.stdout.write("and writes\\n");
const chat = { name: "chat", description: "Chats.", input: { type: "object" }, execute: () => { console.log("the tool prints"); return "chatted"; } };
export default { kind: "kit.agent", describe: async () => ({ tools: [chat] }) };
`;
const triage = "---\nname: triage\ndescription: Sorts issues.\n---\nSort the issues.\n";
const call = (name: string, args: object, id = "c1") => ({
  toolCall: { id, name, args: JSON.stringify(args) },
});

let folder: EditorFolder;
let editor: Editor;
beforeAll(async () => {
  folder = await createEditorFolder(
    { "src/agents/loud.ts": loud, ".agents/skills/triage/SKILL.md": triage, "notes.md": "one\n" },
    `[agent.approvals]\ntools = ["bash"]\n`,
  );
  editor = await openEditor(folder, ["--agent", "loud", "--model", "local/m,local/other"]);
});
afterAll(async () => {
  await editor.leave();
  await folder.close();
});

test("a prompt is answered in chunks, and only the protocol is on stdout although modules and tools print", async () => {
  const id = await editor.newSession();
  folder.provider.script([call("chat", {}), { text: "Hello editor" }]);
  expect(await editor.prompt(id, "Hello")).toBe("end_turn");
  expect(editor.said(id)).toBe("Hello editor");
  for (const line of editor.lines) expect(JSON.parse(line)).toMatchObject({ jsonrpc: "2.0" });
  expect(editor.stderr()).toContain("the module of the agent prints");
  expect(editor.stderr()).toContain("and writes");
  expect(editor.stderr()).toContain("the tool prints");
  const { sessions } = await editor.agent.request(methods.agent.session.list, { cwd: folder.root });
  expect(sessions).toMatchObject([{ sessionId: id, title: "Hello", cwd: folder.root }]);
});

test("a changed file waits for the person, who sees the difference; a denied change does not happen", async () => {
  const id = await editor.newSession();
  editor.permissions.length = 0;
  folder.provider.script([call("edit", { path: "notes.md", old: "one", new: "two" }), { text: "Changed." }]);
  await editor.prompt(id, "Change it");
  const path = join(folder.root, "notes.md");
  const diff = { type: "diff", path, oldText: "one\n", newText: "two\n" };
  const [asked] = editor.permissions;
  expect(asked?.toolCall).toMatchObject({ kind: "edit", title: "edit notes.md", content: [diff] });
  expect(folder.read("notes.md")).toBe("two\n");
  const calls = editor.updates.flatMap(({ update }) => ("toolCallId" in update ? [update] : []));
  expect(calls.at(-1)).toMatchObject({
    status: "completed",
    content: [diff],
    toolCallId: asked?.toolCall.toolCallId,
  });

  editor.decide = () => choose("deny");
  folder.provider.script([call("write", { path: "other.md", content: "no" }), { text: "Not done." }]);
  await editor.prompt(id, "Write another");
  editor.decide = () => choose("allow");
  expect(existsSync(join(folder.root, "other.md"))).toBe(false);
  expect(JSON.stringify(folder.provider.requests.at(-1))).toContain("Denied in the editor.");
  // A provider can give the same id again: the editor must not take the calls for one.
  expect(editor.permissions[1]?.toolCall.toolCallId).not.toBe(asked?.toolCall.toolCallId);
});

test.each([
  ["an option that was not offered", () => choose("always-99")],
  ["an editor that fails", () => Promise.reject(new Error("broken"))],
  ["a cancelled question", () => ({ outcome: { outcome: "cancelled" } }) as const],
])("%s denies the call", async (_, decide) => {
  const id = await editor.newSession();
  editor.decide = decide;
  folder.provider.script([call("write", { path: "denied.md", content: "no" }), { text: "Not done." }]);
  await editor.prompt(id, "Write");
  editor.decide = () => choose("allow");
  expect(existsSync(join(folder.root, "denied.md"))).toBe(false);
});

test("'always' writes one of kit's rules to kit.toml, and later calls of it are not asked about", async () => {
  const id = await editor.newSession();
  editor.permissions.length = 0;
  editor.decide = ({ options }) =>
    choose(options.find(({ kind }) => kind === "allow_always")?.optionId ?? "");
  folder.provider.script([call("write", { path: "kept.md", content: "1" }), { text: "Done." }]);
  await editor.prompt(id, "Write");
  editor.decide = () => choose("allow");
  const [asked] = editor.permissions;
  expect(asked?.options.map(({ name }) => name)[1]).toMatch(/^Always allow: write for the file kept\.md/);
  expect(folder.read("kit.toml")).toContain('path = "kept.md"');
  folder.provider.script([call("write", { path: "kept.md", content: "2" }), { text: "Done." }]);
  await editor.prompt(id, "Write again");
  expect(editor.permissions).toHaveLength(1);
  expect(folder.read("kept.md")).toBe("2");
});

test("a file that decides what kit may do is asked about each time, and a path out of the folder is refused", async () => {
  const id = await editor.newSession();
  const before = folder.read("kit.toml");
  editor.permissions.length = 0;
  editor.decide = ({ toolCall }) => choose(toolCall.title === "write ../outside.md" ? "allow" : "deny");
  folder.provider.script([
    call("write", { path: "kit.toml", content: "[agent]\nallow_shell = true\n" }),
    call("write", { path: "../outside.md", content: "x" }, "c2"),
    { text: "Refused." },
  ]);
  expect(await editor.prompt(id, "Take all rights")).toBe("end_turn");
  editor.decide = () => choose("allow");
  expect(editor.permissions[0]?.options.map(({ kind }) => kind)).toEqual(["allow_once", "reject_once"]);
  expect(folder.read("kit.toml")).toBe(before);
  expect(existsSync(join(folder.root, "../outside.md"))).toBe(false);
});

test("a prompt can be stopped in the middle, at once, and while a permission waits", async () => {
  const id = await editor.newSession();
  const cancel = () => editor.agent.notify(methods.agent.session.cancel, { sessionId: id });
  folder.provider.script([{ answer: { text: "Half of it" }, silentAfter: 2 }]);
  const slow = editor.prompt(id, "Slow");
  await expect.poll(() => editor.said(id)).not.toBe("");
  await cancel();
  expect(await slow).toBe("cancelled");

  folder.provider.script([{ answer: { text: "Never" }, silentAfter: 1 }]);
  const early = editor.prompt(id, "Early");
  await cancel();
  expect(await early).toBe("cancelled");

  const asked = Promise.withResolvers<void>();
  editor.decide = () => {
    asked.resolve();
    return new Promise(() => undefined);
  };
  folder.provider.script([call("write", { path: "waiting.md", content: "x" })]);
  const waiting = editor.prompt(id, "Wait");
  await asked.promise;
  await cancel();
  expect(await waiting).toBe("cancelled");
  editor.decide = () => choose("allow");
  const last = editor.updates.at(-1)?.update;
  expect(last).toMatchObject({ sessionUpdate: "tool_call_update", status: "failed" });
  expect(existsSync(join(folder.root, "waiting.md"))).toBe(false);

  folder.provider.script([{ text: "Here again" }]);
  editor.said(id);
  expect(await editor.prompt(id, "Still there?")).toBe("end_turn");
  expect(editor.said(id)).toBe("Here again");
});

test("two sessions work at once, each with its own updates", async () => {
  const [one, other] = [await editor.newSession(), await editor.newSession()];
  const answer = Promise.withResolvers<void>();
  editor.decide = async () => {
    await answer.promise;
    return choose("deny");
  };
  folder.provider.script([
    call("write", { path: "two.md", content: "x" }),
    { text: "Of the other" },
    { text: "Of the one" },
  ]);
  const first = editor.prompt(one, "First");
  await expect.poll(() => editor.permissions.at(-1)?.sessionId).toBe(one);
  expect(await editor.prompt(other, "Second")).toBe("end_turn");
  answer.resolve();
  expect(await first).toBe("end_turn");
  editor.decide = () => choose("allow");
  expect([editor.said(one), editor.said(other)]).toEqual(["Of the one", "Of the other"]);
});

test("skills are slash commands, and the model and its thinking are options of the session", async () => {
  const { sessionId: id, configOptions } = await editor.agent.request(methods.agent.session.new, {
    cwd: folder.root,
    mcpServers: [],
  });
  expect(configOptions).toMatchObject([
    { id: "model", category: "model", currentValue: "default" },
    { id: "thinking", category: "thought_level", currentValue: "default" },
  ]);
  await expect
    .poll(() => editor.updates.findLast(({ sessionId }) => sessionId === id)?.update)
    .toMatchObject({
      sessionUpdate: "available_commands_update",
      availableCommands: [{ name: "triage" }, { name: "spec" }],
    });
  await editor.agent.request(methods.agent.session.setConfigOption, {
    sessionId: id,
    configId: "model",
    value: "local/other",
  });
  folder.provider.script([{ text: "Sorted" }, { text: "No command" }]);
  await editor.prompt(id, "/triage the new ones");
  expect(folder.provider.requests[0]).toMatchObject({ model: "other" });
  expect(JSON.stringify(folder.provider.requests[0])).toContain("the new ones");
  await editor.prompt(id, "/unknown is plain text");
  expect(JSON.stringify(folder.provider.requests[1])).toContain("/unknown is plain text");
  const wrong = { sessionId: id, configId: "model", value: "local/never-offered" };
  await expect(editor.agent.request(methods.agent.session.setConfigOption, wrong)).rejects.toMatchObject({
    code: -32_602,
  });
});

test("prompts that look like frames are text, and broken frames are answered without ending the session", async () => {
  const id = await editor.newSession();
  const frame = `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"${id}"}}\n{"jsonrpc":"2.0","id":1,"result":{}}\n`;
  folder.provider.script([{ text: frame }]);
  expect(await editor.prompt(id, frame)).toBe("end_turn");
  expect(editor.said(id)).toBe(frame);
  expect(JSON.stringify(folder.provider.requests[0])).toContain("session/cancel");
  const before = editor.lines.length;
  editor.write('not json\n[1]\n"text"\n{"jsonrpc":"2.0"}\n\u0000\n');
  await expect.poll(() => editor.lines.length).toBeGreaterThan(before + 2);
  for (const line of editor.lines.slice(before)) expect(JSON.parse(line)).toMatchObject({ id: null });
  folder.provider.script([{ text: "Still here" }]);
  expect(await editor.prompt(id, "Are you there?")).toBe("end_turn");
});

test("unknown sessions and folders that are none are refused with what is wrong", async () => {
  const { agent } = editor;
  const { session } = methods.agent;
  for (const sessionId of ["acp-00000000000000000000000000", "../../etc", "default"]) {
    await expect(editor.prompt(sessionId, "Hello")).rejects.toMatchObject({ code: -32_002 });
    const load = { sessionId, cwd: folder.root, mcpServers: [] };
    await expect(agent.request(session.load, load)).rejects.toMatchObject({ code: -32_002 });
  }
  for (const [cwd, why] of [
    ["relative", "must be an absolute path"],
    ["/", "contains a whole home folder or disk"],
    [join(folder.root, "missing"), "does not exist"],
  ] as const)
    await expect(agent.request(session.new, { cwd, mcpServers: [] })).rejects.toThrow(why);
});

test("a command is asked about in full, wherever it is in the arguments", async () => {
  const id = await editor.newSession();
  editor.permissions.length = 0;
  editor.decide = () => choose("deny");
  const command = `echo ${"x".repeat(300)}`;
  folder.provider.script([call("bash", { cwd: "docs", command }), { text: "Not done." }]);
  await editor.prompt(id, "Test it");
  editor.decide = () => choose("allow");
  const content = [{ type: "content", content: { type: "text", text: command } }];
  expect(editor.permissions).toMatchObject([{ toolCall: { title: `${command.slice(0, 200)}…`, content } }]);
});

test("a session that is loaded three times at once says everything once", async () => {
  const sessionId = await editor.newSession();
  folder.provider.script([{ text: "Hello" }, { text: "Once" }]);
  await editor.prompt(sessionId, "Begin");
  const load = { sessionId, cwd: folder.root, mcpServers: [] };
  await Promise.all([1, 2, 3].map(() => editor.agent.request(methods.agent.session.load, load)));
  editor.said(sessionId);
  await editor.prompt(sessionId, "Go on");
  expect(editor.said(sessionId)).toBe("Once");
});

test("folders with the home folder are refused, also by a link, and a frame without an end ends with a reason", async () => {
  const home = join(folder.root, ".home/person");
  const link = join(folder.root, ".link");
  mkdirSync(home, { recursive: true });
  symlinkSync(home, link);
  const other = await openEditor(folder, [], { KIT_TRUST: "1", HOME: link });
  for (const cwd of [home, link, join(home, ".."), folder.root])
    await expect(
      other.agent.request(methods.agent.session.new, { cwd, mcpServers: [] }),
      cwd,
    ).rejects.toThrow("contains a whole home folder");
  other.write("x".repeat(40_000_000));
  expect(await other.leave()).toBe(0);
  expect(other.stderr()).toMatch(/^kit acp: .*exceeds.* byte limit, so it ends\.\n$/);
});
