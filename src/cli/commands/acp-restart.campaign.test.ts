import { existsSync } from "node:fs";
import { join } from "node:path";
import { type McpServer, methods } from "@agentclientprotocol/sdk";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  createEditorFolder,
  type EditorFolder,
  openEditor,
  untrustedEnv,
} from "../acp/testing/open-editor.ts";

const call = (name: string, args: object) => ({ toolCall: { id: "c1", name, args: JSON.stringify(args) } });
const bad = `import { writeFileSync } from "node:fs";
writeFileSync(new URL("../../ran", import.meta.url), "");
export default { kind: "kit.agent", describe: async () => ({}) };
`;

let folder: EditorFolder;
beforeAll(async () => {
  folder = await createEditorFolder();
});
afterAll(() => folder.close());

test("after a kill in the middle of a call, another process lists, loads and continues the session", async () => {
  const editor = await openEditor(folder);
  const id = await editor.newSession();
  folder.provider.script([{ text: "Hello" }, call("write", { path: "half.md", content: "x" })]);
  await editor.prompt(id, "Begin");
  const asked = Promise.withResolvers<void>();
  editor.decide = () => {
    asked.resolve();
    return new Promise(() => undefined);
  };
  editor.prompt(id, "Write half").catch(() => undefined);
  await asked.promise;
  // A rule without the table that it is for would make kit.toml invalid.
  expect(editor.permissions[0]?.options.map(({ kind }) => kind)).toEqual(["allow_once", "reject_once"]);
  await editor.kill();

  const next = await openEditor(folder);
  const { session } = methods.agent;
  const { sessions } = await next.agent.request(session.list, { cwd: folder.root });
  expect(sessions).toMatchObject([{ sessionId: id, title: "Begin" }]);
  await next.agent.request(session.load, { sessionId: id, cwd: folder.root, mcpServers: [] });
  expect(next.updates.map(({ update }) => update)).toMatchObject([
    { sessionUpdate: "user_message_chunk", content: { text: "Begin" } },
    { sessionUpdate: "agent_message_chunk", content: { text: "Hello" } },
    { sessionUpdate: "user_message_chunk", content: { text: "Write half" } },
    { sessionUpdate: "tool_call", title: "write half.md", kind: "edit" },
    { sessionUpdate: "tool_call_update", status: "failed" },
  ]);
  expect(existsSync(join(folder.root, "half.md"))).toBe(false);
  folder.provider.script([{ text: "Going on" }]);
  next.said(id);
  expect(await next.prompt(id, "Go on")).toBe("end_turn");
  expect(next.said(id)).toBe("Going on");
  expect(JSON.stringify(folder.provider.requests[0])).toContain("Write half");
  await next.agent.request(session.close, { sessionId: id });
  await expect(next.prompt(id, "Closed")).rejects.toMatchObject({ code: -32_002 });
  expect(await next.leave()).toBe(0);
});

test("the cost of a session is unknown after it was resumed, because its earlier turns are not counted", async () => {
  await using stack = new AsyncDisposableStack();
  const table =
    "[providers.local.context_windows]\nm = 8000\n[providers.local.prices]\nm = { input = 1, output = 1 }\n";
  const priced = await createEditorFolder({}, table);
  stack.defer(() => priced.close());
  const editor = await openEditor(priced);
  const id = await editor.newSession();
  const isCosted = async (text: string): Promise<readonly boolean[]> => {
    const from = editor.updates.length;
    priced.provider.script([{ text }]);
    await editor.prompt(id, text);
    return editor.updates
      .slice(from)
      .flatMap(({ update }) => (update.sessionUpdate === "usage_update" ? ["cost" in update] : []));
  };
  expect(await isCosted("First")).toEqual([true]);
  await editor.agent.request(methods.agent.session.resume, {
    sessionId: id,
    cwd: priced.root,
    mcpServers: [],
  });
  expect(await isCosted("Second")).toEqual([false]);
  expect(await editor.leave()).toBe(0);
});

test("an editor that leaves in the middle of a prompt ends the process, and a signal does the same", async () => {
  for (const how of ["leave", "end"] as const) {
    const editor = await openEditor(folder);
    const id = await editor.newSession();
    folder.provider.script([{ answer: { text: "Half of it" }, silentAfter: 2 }]);
    editor.prompt(id, "Slow").catch(() => undefined);
    await expect.poll(() => editor.said(id)).not.toBe("");
    expect(await editor[how]()).toBe(0);
    expect(editor.stderr()).toBe("");
  }
});

test("code of a folder that the person has not trusted is not run, and an agent of it is refused with what to do", async () => {
  await using stack = new AsyncDisposableStack();
  const strange = await createEditorFolder({ "src/agents/bad.ts": bad });
  stack.defer(() => strange.close());
  const untrusted = untrustedEnv(strange);
  const editor = await openEditor(strange, ["--agent", "bad"], untrusted);
  await expect(editor.newSession()).rejects.toThrow(
    /you have not trusted the code of this folder.*kit trust/,
  );
  expect(await editor.leave()).toBe(0);
  // The agent without code works.
  const other = await openEditor(strange, [], untrusted);
  strange.provider.script([{ text: "Hello" }]);
  expect(await other.prompt(await other.newSession(), "Hello")).toBe("end_turn");
  expect(await other.leave()).toBe(0);
  expect(existsSync(join(strange.root, "ran"))).toBe(false);
});

test("the MCP servers of the editor are tools of its session, with their variables as they are", async () => {
  const editor = await openEditor(folder);
  const server = join(import.meta.dirname, "../../mcp/testing/serve-process.ts");
  const env = [{ name: "PRICE", value: ["$", "{NO_SUCH} $5"].join("") }];
  const tools: McpServer = { name: "my tools", command: process.execPath, args: [server], env };
  const id = await editor.newSession([tools]);
  folder.provider.script([call("mcp__my-tools__echo", { text: "from the server" }), { text: "Echoed" }]);
  await editor.prompt(id, "Echo");
  expect(editor.permissions).toMatchObject([{ toolCall: { kind: "fetch" } }]);
  expect(JSON.stringify(folder.provider.requests[1])).toContain("from the server");
  const without = await editor.newSession();
  folder.provider.script([{ text: "No tools of it" }]);
  await editor.prompt(without, "Which tools?");
  expect(JSON.stringify(folder.provider.requests[0])).not.toContain("mcp__my-tools__echo");
  const sse: McpServer = { type: "sse", name: "old", url: "http://127.0.0.1:9/sse", headers: [] };
  await expect(editor.newSession([sse])).rejects.toThrow("uses SSE");
  expect(await editor.leave()).toBe(0);
});
