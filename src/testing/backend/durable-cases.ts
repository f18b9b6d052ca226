import assert from "node:assert/strict";
import { createApprovals } from "../../agents/approvals/approvals.ts";
import { defineTool } from "../../agents/define/tool.ts";
import type { SessionStore } from "../../stores/contract.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import type { Script, ScriptedTurn } from "../scripted-model.ts";
import {
  type BackendSubject,
  key,
  nextEvent,
  openStage,
  requires,
  resultsOf,
  rolesOf,
} from "./backend-stage.ts";

type Check = (subject: BackendSubject) => Promise<void>;

const payThenSay: Script = ({ prompt }) =>
  prompt.at(-1)?.role === "tool" ? { text: "Done." } : { toolCalls: [{ name: "pay", input: { amount: 5 } }] };

/** Cases about approvals that wait, and processes that die. */
export const durableChecks: Readonly<Record<string, Check>> = {
  "a call that needs approval waits for it, and is run or told to be denied": async (subject) => {
    for (const approved of [true, false]) {
      const stage = openStage(subject, { script: payThenSay, over: { approvals: createApprovals() } });
      const asked = nextEvent(stage.agent, "approval_request");
      const answer = stage.agent.session().prompt("pay");
      const { approval_id, args } = await asked;
      assert.deepEqual([args, stage.ran], [{ amount: 5 }, []]);
      await stage.agent.approvals.decide(approval_id, { approved });
      assert.equal((await answer).text, "Done.");
      assert.deepEqual(stage.ran, approved ? ["pay 5"] : []);
      assert.match(resultsOf(await stage.log())[0] ?? "", approved ? /^paid$/ : /denied/);
    }
  },

  "an approval that waits when the process dies is asked for again under the same id, and runs once": async (
    subject,
  ) => {
    const memory = new InMemorySessionStore();
    const ran: string[] = [];
    const first = openStage(subject, {
      script: payThenSay,
      ran,
      over: { store: memory, approvals: createApprovals() },
    });
    const asked = nextEvent(first.agent, "approval_request");
    // The process dies here: no caller receives this result.
    first.agent
      .session()
      .prompt("pay", { operationId: "op_1" })
      .catch(() => undefined);
    const { approval_id } = await asked;
    const second = openStage(subject, {
      script: payThenSay,
      ran,
      over: { store: memory, approvals: createApprovals() },
    });
    const again = nextEvent(second.agent, "approval_request");
    const answer = second.agent.session().prompt("pay", { operationId: "op_1" });
    assert.equal((await again).approval_id, approval_id);
    await second.agent.approvals.decide(approval_id, { approved: true });
    assert.equal((await answer).text, "Done.");
    assert.deepEqual(ran, ["pay 5"]);
    assert.equal(rolesOf(await second.log()), "user assistant tool assistant");
  },

  "killed at any of its appends, an operation asked for again ends as if nothing had happened": async (
    subject,
  ) => {
    const smooth = await survive(subject, undefined);
    assert.deepEqual(smooth.result, { answer: 42 });
    assert.ok(smooth.appends >= 5);
    const { appends, ...whole } = smooth;
    // For a backend with many appends the test skips some of them.
    const step = Math.ceil(appends / 16);
    for (let at = 1; at <= appends; at += step) {
      for (const isWritten of [false, true]) {
        const { appends: _, ...life } = await survive(subject, { at, isWritten });
        assert.deepEqual(life, whole, `killed ${isWritten ? "after" : "before"} append ${at} of ${appends}`);
      }
    }
  },

  "asked for again after its end, an operation gives its answer without the model": async (subject) => {
    const memory = new InMemorySessionStore();
    const first = openStage(subject, {
      script: [requires("cup"), { text: "done" }],
      over: { store: memory },
    });
    await first.agent.session().prompt("go", { operationId: "op_1" });
    const second = openStage(subject, { script: [], over: { store: memory } });
    const { text, usage, metadata } = await second.agent.session().prompt("go", { operationId: "op_1" });
    assert.deepEqual([text, metadata.turns, usage.total_tokens], ["done", 2, 0]);
    assert.equal(second.model.calls.length, 0);
  },
};

interface Doom {
  /** The append at which the process dies, from 1. */
  readonly at: number;
  /** Whether that append reaches the store. */
  readonly isWritten: boolean;
}

/** A store as used by a process that dies at one of its appends: from then on its calls have no effect. */
function doomedStore(
  store: SessionStore,
  doom: Doom | undefined,
): {
  readonly store: SessionStore;
  readonly end: Promise<void>;
  readonly isDead: () => boolean;
  appends: () => number;
} {
  const { promise: end, resolve } = Promise.withResolvers<void>();
  const never = new Promise<never>(() => undefined);
  let appends = 0;
  let dead = false;
  return {
    end,
    isDead: () => dead,
    appends: () => appends,
    store: {
      async append(request) {
        if (dead) return never;
        appends += 1;
        const isLast = appends === doom?.at;
        if (!isLast || doom?.isWritten === true) await store.append(request);
        if (!isLast) return;
        dead = true;
        resolve();
        return never;
      },
      read: async (...asked) => (dead ? never : store.read(...asked)),
      info: async (asked) => (dead ? never : store.info(asked)),
      list: async (filter) => (dead ? never : store.list(filter)),
      delete: async (asked) => (dead ? never : store.delete(asked)),
      close: () => undefined,
    },
  };
}

const answerSchema = { type: "object", properties: { answer: { const: 42 } }, required: ["answer"] } as const;

/** A model whose next turn depends only on the prompt: each of its texts names its turn. */
const conversation: Script = ({ prompt }): ScriptedTurn => {
  const output = JSON.stringify(prompt.slice(1));
  const latest = Math.max(-1, ...[...output.matchAll(/\[turn (\d+)\]/g)].map((match) => Number(match[1])));
  const usage = { input: 10, output: 1 };
  const call = (name: string) => ({ name, id: "call_1", input: { in: String(latest) } });
  const turns: readonly ScriptedTurn[] = [
    { toolCalls: [call("once"), call("again")] },
    { toolCalls: [call("nope")] },
    { toolCalls: [call("once")] },
    { text: "no JSON" },
    { text: '{"answer": 42}' },
  ];
  const { text = "", ...turn } = turns[latest + 1] ?? {};
  return { ...turn, text: `[turn ${latest + 1}] ${text}`, usage };
};

/** Runs a conversation in a process that dies at `doom`, and continues it in another process. */
async function survive(subject: BackendSubject, doom: Doom | undefined) {
  const memory = new InMemorySessionStore();
  const ran: string[] = [];
  let appends = 0;
  for (const life of doom === undefined ? [undefined] : [doom, undefined]) {
    const process = doomedStore(memory, life);
    const run = (name: string, idempotent: boolean) =>
      defineTool({
        name,
        description: name,
        input: { type: "object" },
        idempotent,
        execute: (_input, { idempotencyKey }) => {
          if (process.isDead()) return new Promise<string>(() => undefined);
          ran.push(`${name} ${idempotencyKey}`);
          return `${name} ran`;
        },
      });
    const stage = openStage(subject, {
      script: conversation,
      profile: { tools: [run("once", false), run("again", true)] },
      over: { store: process.store },
    });
    const answer = stage.agent
      .session()
      .prompt<unknown>("begin", { operationId: "op_1", result: answerSchema });
    const ended = await Promise.race([process.end.then(() => undefined), answer]);
    appends += process.appends();
    if (ended === undefined) {
      answer.catch(() => undefined);
      continue;
    }
    const once = ran.filter((line) => line.startsWith("once"));
    assert.equal(new Set(once).size, once.length, "a tool ran twice that may not");
    const { text, result, usage, metadata, messages } = ended;
    const roles = rolesOf(await memory.read(key));
    return { text, result, usage, turns: metadata.turns, roles, messages: messages.length, appends };
  }
  throw new Error("The operation did not end.");
}
