import { expect, test } from "vitest";
import type { KitEvent } from "../../protocol/event.ts";
import type { ReceiptItem } from "../../protocol/receipt.ts";
import { createScriptedModel, type ScriptedTurn } from "../../testing/scripted-model.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import type { AnyTool } from "../define/tool.ts";

const tool = (name: string): AnyTool => ({ name, description: name, input: {}, execute: () => name });

test("tools of other sources keep their order and place, and a new one comes last", async () => {
  const offered: (readonly string[])[] = [];
  const script: ScriptedTurn[] = [
    { text: "1" },
    { toolCalls: [{ id: "c", name: "mcp__s__a" }] },
    { text: "2" },
    { text: "3" },
    { text: "4" },
  ];
  const model = createScriptedModel((call, index) => {
    offered.push(
      (call.tools ?? []).flatMap(({ name }) => (name.startsWith("mcp__") ? [name.at(-1) ?? ""] : [])),
    );
    return script[index] ?? {};
  });
  const [a, b, c] = ["mcp__s__a", "mcp__s__b", "mcp__s__c"].map(tool) as [AnyTool, AnyTool, AnyTool];
  let there: readonly AnyTool[] = [a, b];
  const events: KitEvent[] = [];
  const profile = { onEvent: (event: KitEvent) => events.push(event) };
  const session = createTestAgent(model, profile, { toolSources: [async () => there] }).session();
  await session.prompt("All are there.");
  there = [b];
  const { messages } = await session.prompt("One is away.");
  expect(JSON.stringify(messages)).toContain("There is no tool named");
  there = [c, b, a];
  await session.prompt("One is new, and they come in another order.");
  await session.prompt("As before.");
  expect(offered).toEqual([
    ["a", "b"],
    ["a", "b"],
    ["a", "b"],
    ["a", "b", "c"],
    ["a", "b", "c"],
  ]);
  const changed = events.flatMap((event) => (event.type === "turn_request" ? [event.prefix?.changed] : []));
  expect(changed).toEqual([undefined, undefined, undefined, ["tools"], undefined]);
});

test("the receipt lists the rules that a tool result shows, without secrets and without the cut part", async () => {
  const item = { kind: "memory", id: "n/1", why: "recalled, canary-secret-1", tokens: 2.5 } as const;
  const cut = { kind: "memory", id: "n/2", why: "recalled", tokens: 5 } as const;
  const recall = {
    ...tool("recall"),
    maxResultChars: 100,
    execute: () => ({
      content: `n/1 ${"x".repeat(500)} n/2 ${"x".repeat(500)}`,
      shows: [
        item,
        cut,
        ...[0, 1].map((line) => ({
          kind: "memory",
          id: "n/1",
          why: `of line ${line}`,
          tokens: 1,
          file: "a",
          line,
        })),
        null,
        "text",
        { kind: "rule", id: "a", why: "b", tokens: 1 },
      ] as readonly ReceiptItem[],
    }),
  };
  const broken = { ...tool("broken"), execute: () => ({ content: "n/3", shows: "all" as never }) };
  const call = (name: string): ScriptedTurn => ({ toolCalls: [{ id: name, name }] });
  const model = createScriptedModel([call("recall"), call("broken"), { text: "ok" }]);
  const events: KitEvent[] = [];
  const profile = { tools: [recall, broken], onEvent: (event: KitEvent) => events.push(event) };
  const session = createTestAgent(model, profile, { env: { KEY: "canary-secret-1" } }).session();
  await session.prompt("Recall.", { secrets: ["KEY"] });
  const added = events.flatMap((event) =>
    event.type === "turn_request" ? (event.receipt?.added ?? []) : [],
  );
  expect(added.filter(({ kind }) => kind === "memory")).toEqual([
    { kind: "memory", id: "n/1", why: expect.stringMatching(/^recalled, (?!canary)/), tokens: 3 },
    { kind: "memory", id: "n/1", why: "of line 0", tokens: 1, file: "a" },
    { kind: "memory", id: "n/1", why: "of line 1", tokens: 1, file: "a", line: 1 },
  ]);
});
