import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import type { KitEvent } from "../../protocol/event.ts";
import type { Message } from "../../protocol/message.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { SqliteSessionStore } from "../../stores/sqlite/sqlite-store.ts";
import { rounds } from "../../testing/campaign.suite.ts";
import { createScriptedModel, type ScriptedModel, type ScriptedTurn } from "../../testing/scripted-model.ts";
import { testFolder } from "../../testing/test-folder.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import { defineTool } from "../define/tool.ts";
import type { Agent } from "../harness.ts";
import type { PromptResult } from "../operations/options.ts";
import { type Doom, openDoomed } from "./crash.suite.ts";

const folder = testFolder(afterAll);
let files = 0;
const freshFile = (): string => {
  files += 1;
  return join(folder, `${files}.db`);
};

/** A scripted conversation: the tool calls of each turn, then the answers. */
interface Conversation {
  readonly turns: readonly { readonly calls: readonly string[]; readonly complete?: boolean }[];
  /** Invalid typed answers before the valid one; `undefined` for an answer in plain text. */
  readonly misfits?: number;
}

/** The visible effects of all processes: the tools that ran. */
interface World {
  readonly ran: string[];
}

const answerSchema = {
  type: "object",
  properties: { answer: { type: "number" } },
  required: ["answer"],
} as const;

/**
 * A model that chooses its next turn only from its prompt, as a real one does: each of its texts contains the number
 * of its turn, and a summary contains the number of the last one.
 */
function modelOf(conversation: Conversation): ScriptedModel {
  return createScriptedModel(({ prompt }): ScriptedTurn => {
    const output = JSON.stringify(prompt.slice(1));
    const isSummary = JSON.stringify(prompt[0]).includes("colleague");
    const isChild = !isSummary && JSON.stringify(prompt[1]).includes("child of");
    const label = isChild ? /\[step (\d+)\]/g : /\[turn (\d+)\]/g;
    const latest = Math.max(-1, ...[...output.matchAll(label)].map((match) => Number(match[1])));
    const usage = { input: 10, output: 1 };
    if (isSummary) return { text: `[turn ${latest}] it was.`, usage };
    if (isChild) {
      return latest === -1
        ? { text: "[step 0]", toolCalls: [{ name: "once", input: { in: "child" } }], usage }
        : { text: "[step 1] the child is done", usage };
    }
    const index = latest + 1;
    const turn = conversation.turns[index];
    if (turn !== undefined) {
      const toolCalls = turn.calls.map((name, at) => ({
        name,
        id: `call_${index}_${at}`,
        input: name === "task" ? { prompt: `child of ${index}_${at}` } : { in: `${index}_${at}` },
      }));
      return { text: `[turn ${index}]`, toolCalls, usage: turn.complete ? { input: 900, output: 1 } : usage };
    }
    const misfits = conversation.misfits;
    if (misfits === undefined) return { text: `[turn ${index}] done`, usage };
    return index < conversation.turns.length + misfits
      ? { text: `[turn ${index}] no JSON`, usage }
      : { text: `[turn ${index}] {"answer": 42}`, usage };
  });
}

interface Life {
  readonly agent: Agent;
  readonly events: KitEvent[];
  ask(): Promise<PromptResult<unknown>>;
}

function live(
  conversation: Conversation,
  world: World,
  place: {
    readonly store: SqliteSessionStore | ReturnType<typeof openDoomed>["store"];
    dead?: () => boolean;
  },
): Life {
  const run = (name: string, idempotent: boolean) =>
    defineTool({
      name,
      description: name,
      input: { type: "object" },
      idempotent,
      execute: (_input, { idempotencyKey }) => {
        if (place.dead?.() === true) return new Promise<string>(() => undefined);
        world.ran.push(`${name} ${idempotencyKey}`);
        return `${name} ran`;
      },
    });
  const events: KitEvent[] = [];
  const agent = createTestAgent(
    modelOf(conversation),
    {
      tools: [run("once", false), run("again", true)],
      compaction: { contextWindowTokens: 1_000, reserveTokens: 200, keepRecentTokens: 1 },
      onEvent: (event) => events.push(event),
    },
    {
      store: place.store,
      validateJson: (schema, value) =>
        schema !== answerSchema || JSON.stringify(value) === '{"answer":42}' ? [] : ["answer is missing"],
    },
  );
  return {
    agent,
    events,
    ask: () =>
      agent.session().prompt<unknown>("begin", {
        operationId: "op_1",
        ...(conversation.misfits === undefined ? {} : { result: answerSchema }),
      }),
  };
}

interface Outcome {
  readonly result: PromptResult<unknown>;
  readonly log: readonly SessionEntry[];
  readonly world: World;
  readonly appends: number;
  readonly resumed: boolean;
}

const key = { agent: "tester", instance_id: "1", session: "default" };

/** Runs a conversation in processes that crash one after the other, and finally in one that does not. */
async function survive(conversation: Conversation, dooms: readonly Doom[]): Promise<Outcome> {
  const file = freshFile();
  const world: World = { ran: [] };
  for (const doom of dooms) {
    const doomed = openDoomed(file, doom);
    const life = live(conversation, world, { store: doomed.store, dead: () => doomed.dead });
    await Promise.race([doomed.end, life.ask()]);
    await doomed.store.close();
  }
  const last = openDoomed(file, { at: 0, when: "after" });
  const life = live(conversation, world, { store: last.store });
  const result = await life.ask();
  const log = await last.store.read(key);
  await last.store.close();
  const start = life.events.find((event) => event.type === "operation_start");
  return { result, log, world, appends: last.appends, resumed: start?.resumed === true };
}

function messagesOf(log: readonly SessionEntry[]): readonly Message[] {
  return log.flatMap((entry) => (entry.type === "message" ? [entry.message] : []));
}

function expectWhole(survived: Outcome, smooth: Outcome): void {
  const messages = messagesOf(survived.log);
  const asked = messages.filter((message) => message.role === "user" && message.source === undefined);
  expect(asked).toHaveLength(1);
  messages.forEach((message, at) => {
    const calls = message.content.flatMap((part) => (part.type === "tool_call" ? [part.tool_call_id] : []));
    if (calls.length === 0) return;
    const next = messages[at + 1];
    expect(next?.content.map((part) => part.type === "tool_result" && part.tool_call_id)).toEqual(calls);
  });
  const once = survived.world.ran.filter((line) => line.startsWith("once"));
  expect(new Set(once).size).toBe(once.length);
  const { text, result, usage, model, metadata } = survived.result;
  expect({ text, result, usage, model }).toEqual({
    text: smooth.result.text,
    result: smooth.result.result,
    usage: smooth.result.usage,
    model: smooth.result.model,
  });
  expect(metadata.turns).toBe(smooth.result.metadata.turns);
  expect(metadata.finish_reason).toBe(smooth.result.metadata.finish_reason);
  expect(messages.map((message) => message.role)).toEqual(
    messagesOf(smooth.log).map((message) => message.role),
  );
  expect(survived.result.messages.map((message) => message.role)).toEqual(
    smooth.result.messages.map((message) => message.role),
  );
}

const eventful: Conversation = {
  turns: [
    { calls: ["once", "again"] },
    { calls: ["task"], complete: true },
    { calls: ["once"] },
    { calls: ["task", "task", "once"] },
  ],
  misfits: 2,
};

test("an operation that is repeated after a crash at any append returns the same result as one without a crash", async () => {
  const smooth = await survive(eventful, []);
  expect(smooth.result.result).toEqual({ answer: 42 });
  expect(smooth.log.some((entry) => entry.type === "compaction")).toBe(true);
  expect(smooth.appends).toBeGreaterThan(20);
  for (let at = 1; at <= smooth.appends; at += 1) {
    for (const when of ["before", "after"] as const)
      expectWhole(await survive(eventful, [{ at, when }]), smooth);
  }
});

test("any conversation ends the same, however often its process crashes", async () => {
  const conversations = fc.record(
    {
      turns: fc.array(
        fc.record(
          {
            calls: fc.array(fc.constantFrom("once", "again", "task", "unknown"), {
              minLength: 1,
              maxLength: 3,
            }),
            complete: fc.boolean(),
          },
          { requiredKeys: ["calls"] },
        ),
        { maxLength: 3 },
      ),
      misfits: fc.integer({ min: 0, max: 3 }),
    },
    { requiredKeys: ["turns"] },
  );
  const dooms = fc.array(
    fc.record({ at: fc.integer({ min: 1, max: 8 }), when: fc.constantFrom("before", "after") }),
    { minLength: 1, maxLength: 4 },
  );
  await fc.assert(
    fc.asyncProperty(conversations, dooms, async (conversation, deaths) => {
      expectWhole(await survive(conversation, deaths), await survive(conversation, []));
    }),
    { numRuns: rounds(10, 40) },
  );
});
