import { expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { inNode } from "./node-process.suite.ts";

const agentAnswering = (text: string): string =>
  `import { createAgent } from "kit";\nexport default createAgent({ instructions: ${JSON.stringify(text)} });\n`;

/** Sets up a model whose tool or command may write whatever it likes. */
const prelude = `
import { cpSync, existsSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, utimesSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
const kit = await import(${JSON.stringify(new URL("../../index.ts", import.meta.url).href)});
const { local } = await import(${JSON.stringify(new URL("../../sandboxes/local/index.ts", import.meta.url).href)});
const at = (path) => join(root, path);
let act = async () => undefined;
const deed = kit.defineTool({ name: "deed", description: "x", input: { type: "object" }, execute: async () => { await act(); return "done"; } });
const calls = [];
const script = ({ prompt }) => prompt.at(-1).role === "tool" || calls.length === 0 ? { text: systemOf({ prompt }) } : { toolCalls: calls.splice(0) };
const worker = (app, over = {}) => app.init(kit.createAgent({ tools: [deed], sandbox: local({ root }), allowWrite: true, ...over }), { name: "worker" });
/** Has the model do something, at a time that no person writes at. */
const letModel = async (app, what) => {
  await sleep(30);
  act = what;
  calls.push({ name: "deed", input: {} });
  await (await worker(app)).session().prompt("go");
  await sleep(60);
};
const callTool = async (app, name, input, over) => {
  calls.push({ name, input });
  const { messages } = await (await worker(app, over)).session(name + Math.random()).prompt("go");
  return messages.find(({ role }) => role === "tool").content[0].content[0].text;
};
const says = async (app, name) => (await (await app.instance(name, String(Math.random()))).session().prompt("x")).text.split("\\n")[0];
const heldOf = (app) => app.problems().map(({ message }) => message);
`;

test("a reload keeps the old code, however a model has written new code, and reports why", async () => {
  const names = [
    "over",
    "renamed",
    "linked",
    "helped",
    "foldered",
    "moved",
    "packaged",
    "appended",
    "deleted",
  ];
  await using folder = await createTemporaryRepository({
    "package.json": '{ "type": "module" }',
    "evil.txt": agentAnswering("evil"),
    "attic/lib/say.ts": 'export const say = "evil";\n',
    ...Object.fromEntries(names.map((name) => [`src/agents/${name}.ts`, agentAnswering("good")])),
    "src/agents/helped.ts": `import { createAgent } from "kit";\nimport { say } from "../lib/say.ts";\nexport default createAgent({ instructions: say });\n`,
    "src/agents/foldered.ts": `import { createAgent } from "kit";\nimport { say } from "../shared/say.ts";\nexport default createAgent({ instructions: say });\n`,
    "src/agents/moved.ts": `import { createAgent } from "kit";\nimport { say } from "../parts/say.ts";\nexport default createAgent({ instructions: say });\n`,
    "src/agents/packaged.ts": `import { createAgent } from "kit";\nimport { say } from "../pack/say.js";\nexport default createAgent({ instructions: say });\n`,
    "src/lib/say.ts": 'export const say = "good";\n',
    "src/shared/say.ts": 'export const say = "good";\n',
    "src/parts/say.ts": 'export const say = "good";\n',
    "src/pack/say.js": 'export const say = "good";\n',
  });
  const code = `${prelude}
const evil = ${JSON.stringify(agentAnswering("evil"))};
const ways = {
  over: () => write("src/agents/over.ts", evil),
  renamed: () => { renameSync(at("evil.txt"), at("src/agents/renamed.ts")); },
  linked: () => { rmSync(at("src/agents/linked.ts")); mkdirSync(at("x")); write("x/evil.ts", evil); linkSync(at("x/evil.ts"), at("src/agents/linked.ts")); },
  helped: () => { write("src/lib/say.ts", 'export const say = "evil";'); utimesSync(at("src/lib/say.ts"), 1, 1); },
  foldered: () => { rmSync(at("src/shared"), { recursive: true }); symlinkSync(at("attic/lib"), at("src/shared")); },
  moved: () => { renameSync(at("src/parts"), at("parts-before")); renameSync(at("attic/lib"), at("src/parts")); cpSync(at("src/parts"), at("attic/lib"), { recursive: true }); },
  packaged: () => write("src/pack/package.json", '{ "type": "commonjs" }'),
  appended: async () => { const text = readFileSync(at("src/agents/appended.ts"), "utf8"); write("src/agents/appended.ts", text + "globalThis.evil = true;"); },
  deleted: () => { rmSync(at("src/agents/deleted.ts")); },
};
const app = await open(script);
const found = {};
for (const [name, way] of Object.entries(ways)) {
  await letModel(app, way);
  const changed = await app.hasChanged();
  await app.reload();
  found[name] = [await says(app, name), heldOf(app).some((text) => text.includes('the agent "worker" (deed)')), changed];
}
write("src/agents/new.ts", evil);
await letModel(app, () => { write("src/agents/fresh.ts", evil); });
await app.reload();
found.new = await says(app, "new");
found.fresh = await app.instance("fresh", "1").then(() => "loaded", ({ code }) => code);
await app.close();
say({ found, evil: globalThis.evil === true });`;
  const { found, evil } = (await inNode(folder.root, code)) as {
    found: Record<string, unknown>;
    evil: boolean;
  };
  expect(evil).toBe(false);
  for (const name of names) {
    // A changed package.json alone changes no file that was read: the next reload finds it.
    expect([name, found[name]]).toEqual([name, ["good", true, name !== "packaged"]]);
  }
  // Kit loads a file that a person writes at any other time.
  expect(found.new).toBe("evil");
  expect(found.fresh).toBe("agent_not_found");
});

test("a file that a tool of kit wrote stays out until a person accepts it, also after a restart and a formatter", async () => {
  await using folder = await createTemporaryRepository({
    "package.json": '{ "type": "module" }',
    "src/agents/a.ts": agentAnswering("before"),
  });
  const importing = `import { createAgent } from "kit";\nimport { say as text } from "../plugins/new.ts";\nexport default createAgent({ instructions: text });\n`;
  const code = `${prelude}
const found = [];
const first = await open(script);
found.push(await callTool(first, "write", { path: "src/plugins/new.ts", content: 'export const say = "after";' }));
// A person, or a formatter that runs by itself, writes later: nothing tells them apart.
await sleep(60);
write("src/plugins/new.ts", 'export const say = "after";\\n');
write("src/agents/a.ts", ${JSON.stringify(importing)});
await first.reload();
found.push(await says(first, "a"), heldOf(first));
await first.close();
say(found);`;
  const restarted = `${prelude}
const found = [];
const app = await open(script);
found.push(await app.instance("a", "1").then(() => "loaded", ({ hint }) => hint));
const { AgentWrites } = await import(${JSON.stringify(new URL("agent-writes.ts", import.meta.url).href)});
const person = new AgentWrites(root);
found.push(person.held().map(({ path }) => path), await app.hasChanged());
person.accepted(at("src/plugins/new.ts"));
found.push(await app.hasChanged());
await app.reload();
found.push(await says(app, "a"), person.held());
write("src/plugins/new.ts", 'export const say = "by a person";');
await app.reload();
found.push(await says(app, "a"));
await app.close();
say(found);`;
  const text =
    'src/plugins/new.ts was written by the agent "worker" (write), and is not loaded. Look at it, then: kit approvals accept src/plugins/new.ts';
  expect(await inNode(folder.root, code)).toEqual([
    "Wrote 27 characters to src/plugins/new.ts.",
    "before",
    [text],
  ]);
  expect(await inNode(folder.root, restarted)).toEqual([
    `src/agents/a.ts: ${text}`,
    ["src/plugins/new.ts"],
    false,
    true,
    "after",
    [],
    "by a person",
  ]);
});

test("files that the process has loaded, and what could come in their place, are protected; a person may approve", async () => {
  await using folder = await createTemporaryRepository({
    "package.json": '{ "type": "module" }',
    "src/agents/a.ts": `import { createAgent } from "kit";\nimport { say as text } from "../lib/words.ts";\nimport "../lib/more/index.ts";\nexport default createAgent({ instructions: text });\n`,
    "src/lib/words.ts": 'export const say = "before";\n',
    "src/lib/more/index.ts": "export {};\n",
    "src/lib/other.ts": "export {};\n",
  });
  const code = `${prelude}
const approvals = kit.createApprovals();
const app = await open(script, { approvals });
const tried = [];
for (const path of ["src/lib/words.ts", "src/LIB/Words.ts", "src/lib/words.js", "src/lib/more.ts", "src/lib/more/index.js", "link.ts"]) {
  if (path === "link.ts") symlinkSync(at("src/lib/words.ts"), at(path));
  tried.push((await callTool(app, "write", { path, content: "x" })).includes("protected"));
}
tried.push((await callTool(app, "edit", { path: "src/lib/words.ts", old: "before", new: "x" })).includes("protected"));
tried.push((await callTool(app, "rm", { path: "src/lib", recursive: true })).includes("protected"));
const free = [];
for (const path of ["src/lib/words.test.ts", "src/lib/words.md", "src/lib/words2.ts", "src/lib/other.ts"])
  free.push((await callTool(app, "write", { path, content: "x" })).startsWith("Wrote"));
const over = { approvals: { tools: [] } };
const asked = callTool(app, "write", { path: "src/lib/words.ts", content: 'export const say = "after";' }, over);
let waiting = [];
while (waiting.length === 0) { await sleep(5); waiting = await approvals.list(); }
await approvals.decide(waiting[0].approval_id, { approved: true });
const said = await asked;
await app.reload();
const after = await says(app, "a");
await app.close();
say({ tried, free, said, after, problems: app.problems() });`;
  expect(await inNode(folder.root, code)).toEqual({
    tried: [true, true, true, true, true, true, true, true],
    free: [true, true, true, true],
    said: "Wrote 27 characters to src/lib/words.ts, replacing 1 line.",
    after: "after",
    problems: [],
  });
});

test("isolated commands cannot change protected files, but can write others", async ({ skip }) => {
  const files = {
    "package.json": '{ "type": "module" }',
    "kit.toml": "",
    ".env": "A=1\n",
    ".github/workflows/ci.yml": "on: push\n",
    ".vscode/tasks.json": "{}\n",
    "src/agents/a.ts": `import { createAgent } from "kit";\nimport { say as text } from "../lib/words.ts";\nimport { x } from "dep";\nexport default createAgent({ instructions: text });\n`,
    "src/lib/words.ts": 'export const say = "good";\n',
    "node_modules/dep/index.js": "export const x = 1;\n",
    "node_modules/dep/package.json": '{ "type": "module", "exports": "./index.js" }\n',
  };
  await using folder = await createTemporaryRepository({
    ...files,
    "node_modules/.cache/a": "",
    "free.txt": "",
  });
  const code = `${prelude}
const app = await open(script);
const sandbox = await local({ root }).open({ agent: "a", instance_id: "1", session: "s" });
if ((await sandbox.isolation()).wall === "none") say("no wall");
else {
  const kept = ${JSON.stringify(Object.keys(files))};
  const over = { allowShell: true, allowCompoundCommands: true };
  for (const path of kept) await callTool(app, "bash", { command: "echo evil > " + path + "; rm -f " + path + "; echo evil > /tmp/x; mv /tmp/x " + path }, over);
  await callTool(app, "bash", { command: "echo evil > src/agents/new.ts; echo evil > free.txt; echo evil > node_modules/.cache/a" }, over);
  say({ texts: Object.fromEntries(kept.map((path) => [path, readFileSync(at(path), "utf8")])), fresh: existsSync(at("src/agents/new.ts")), free: readFileSync(at("free.txt"), "utf8"), cache: readFileSync(at("node_modules/.cache/a"), "utf8") });
}
await app.close();`;
  const found = await inNode(folder.root, code);
  skip(found === "no wall", "This machine cannot isolate commands.");
  expect(found).toEqual({ texts: files, fresh: false, free: "evil\n", cache: "" });
});
