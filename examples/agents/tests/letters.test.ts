import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { App } from "kit";
import { local } from "kit/sandboxes/local";
import { createScriptedModel, openTestApp, type Script, type ScriptedModel } from "kit/testing";

const root = join(import.meta.dirname, "..");
const prompts: string[] = [];
let script: Script = [];
let turn = 0;
let app: App;

const model: ScriptedModel = createScriptedModel((call) => {
  prompts.push(JSON.stringify(call.prompt));
  const index = turn++;
  return typeof script === "function" ? script(call, index) : (script[index] ?? { text: "Nothing more." });
});

before(async () => {
  app = await openTestApp({ root, model, sandbox: local({ root }), python: true, mcp: true });
});
after(() => app.close());

function follow(next: Script): void {
  script = next;
  turn = 0;
  prompts.length = 0;
}

test("a letter becomes a checked draft: looked up, computed with Python, in the role of the careful", async () => {
  const draft = { topic: "return", answer: "We pay 12.66 euros back.", refund_cents: 1266 };
  follow([
    { toolCalls: [{ name: "catalog", input: { title: "Momo" } }] },
    { toolCalls: [{ name: "run_code", input: { code: "discounted(1490, 15)" } }] },
    { text: "I would pay back 12.66 euros." },
    { text: `\`\`\`json\n${JSON.stringify(draft)}\n\`\`\`` },
  ]);
  const payload = { letter: "May I bring Momo back? I have read it.", customer: "ann" };
  const { result } = await app.run("answer-letter", { payload });
  assert.deepEqual(result, draft);
  assert.match(prompts[0] ?? "", /now those of customer ann/);
  assert.match(prompts[0] ?? "", /check every fact with a tool/);
  assert.match(prompts[0] ?? "", /Never promise a date/);
  assert.match(prompts[1] ?? "", /1490/);
  assert.match(prompts[2] ?? "", /Result: 1266/);
});

test("a draft that never fits ends the run, after three repairs", async () => {
  follow(() => ({ text: '{"topic": "weather"}' }));
  await assert.rejects(app.run("answer-letter", { payload: { letter: "Hm." } }), { code: "typed_output" });
  assert.equal(prompts.length, 4);
  assert.match(prompts.at(-1) ?? "", /topic/);
  await assert.rejects(app.run("answer-letter"), { code: "invalid_request" });
});

test("questions about earlier letters go to the archivist, who sees neither the conversation nor Python", async () => {
  const offered: string[][] = [];
  follow((call, index) => {
    offered.push((call.tools ?? []).map(({ name }) => name));
    const steps = [
      { toolCalls: [{ name: "task", input: { prompt: "What did Ann buy?", agent: "archivist" } }] },
      { toolCalls: [{ name: "grep", input: { pattern: "bought", path: "letters" } }] },
      { text: "Momo (letters/2026-10-02.md:3)." },
      { text: "You bought Momo." },
    ];
    return steps[index] ?? {};
  });
  const { text } = await (await app.instance("desk", "ann")).session().prompt("What did I buy?");
  assert.equal(text, "You bought Momo.");
  assert.match(prompts[2] ?? "", /I bought Momo on the first of October/);
  assert.doesNotMatch(prompts[1] ?? "", /What did I buy/);
  assert.deepEqual(
    offered.slice(0, 2).map((names) => names.includes("run_code")),
    [true, false],
  );
});

test("the tools of the MCP server are there, as far as the configuration allows", async () => {
  let offered: string[] = [];
  follow((call, index) => {
    offered = (call.tools ?? []).map(({ name }) => name);
    return index === 0
      ? { toolCalls: [{ name: "mcp__stock__in_stock", input: { title: "Momo" } }] }
      : { text: "Three are there." };
  });
  await (await app.instance("desk", "ben")).session().prompt("Is Momo there?");
  assert.match(prompts[1] ?? "", /3 copies of Momo/);
  assert.ok(!offered.includes("mcp__stock__empty_shelf"));
});
