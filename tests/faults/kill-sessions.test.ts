import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { textOf } from "../../src/protocol/read-records.ts";
import type { SessionEntry } from "../../src/protocol/session-entry.ts";
import { SqliteSessionStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { testFolder } from "../../src/testing/test-folder.ts";
import { answerTo, createBusyAgent } from "./busy-agent.ts";
import { createRandom } from "./seeded-random.ts";

const rounds = Number(process.env.KIT_FAULT_ROUNDS ?? 8);
const seed = Number(process.env.KIT_FAULT_SEED ?? 1);
/** Kills per database: a new database keeps the complete read after each kill quick. */
const killsPerDatabase = 25;

const identity = { agent: "tester", instance_id: "1" };

test(
  `after SIGKILL at any moment, sessions are readable and continue (${rounds} rounds, seed ${seed})`,
  async () => {
    const folder = testFolder(onTestFinished);
    const random = createRandom(seed);
    const seen = { answered: 0, open: 0, tasks: 0, compactions: 0 };
    let acknowledged: (readonly [session: string, prompt: string])[] = [];
    const ended = new Set<string>();
    // The kills must hit work of every kind.
    for (let round = 0; round < rounds || Object.values(seen).includes(0); round += 1) {
      if (round % killsPerDatabase === 0) acknowledged = [];
      const file = join(folder, `${Math.floor(round / killsPerDatabase)}.db`);
      const args = [file, `${seed + round}`, `${round * 10_000 + 1}`];
      const answered = await promptAndKill(args, { answers: random(12), thenMs: random(20) });
      acknowledged.push(...answered);
      seen.answered += answered.length;
      const store = new SqliteSessionStore({ file });
      try {
        const agent = createBusyAgent(store, random, { startsTasks: false });
        for (const { session, position, parent } of store.list(identity)) {
          // The test checks a task's session once, because no round prompts it again.
          if (ended.has(session)) continue;
          if (parent !== undefined) ended.add(session);
          const key = { ...identity, session };
          const entries = store.read(key);
          expect(entries).toHaveLength(position);
          seen.open += openCalls(entries).length;
          seen.tasks += parent === undefined ? 0 : 1;
          seen.compactions += entries.filter((entry) => entry.type === "compaction").length;
          // Only the last model call can lack its results.
          expect(openCalls(entries)).toEqual(callsOf(entries.at(-1)));
          const mine = acknowledged.filter(([name]) => name === session).map(([, prompt]) => prompt);
          expect(unanswered(entries, mine)).toEqual([]);
          const prompt = `#${round * 10_000}`;
          expect((await agent.session(session).prompt(prompt)).text).toBe(answerTo(prompt));
          expect(openCalls(store.read(key))).toEqual([]);
        }
      } finally {
        store.close();
      }
    }
  },
  600_000 + rounds * 5_000,
);

/** Lets a child work until a number of prompts were answered and a while longer, kills it, and returns the answered prompts. */
async function promptAndKill(
  args: readonly string[],
  { answers, thenMs }: { readonly answers: number; readonly thenMs: number },
): Promise<(readonly [string, string])[]> {
  const script = join(import.meta.dirname, "prompt-until-killed.ts");
  const child: ChildProcess = spawn(process.execPath, [script, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  let failed = "";
  const ready = new Promise<void>((resolve) => {
    child.stdout?.on("data", (chunk) => {
      output += chunk;
      if (output.startsWith("ready\n") && output.split("\n").length > answers + 1) resolve();
    });
  });
  child.stderr?.on("data", (chunk) => {
    failed += chunk;
  });
  const closed = once(child, "close");
  await Promise.race([ready, closed]);
  await Promise.race([delay(thenMs), closed]);
  child.kill("SIGKILL");
  const [, signal] = await closed;
  expect(failed).toBe("");
  expect(signal).toBe("SIGKILL");
  return output
    .split("\n")
    .slice(1, -1)
    .map((line) => line.split(" ") as [string, string]);
}

/** The tool calls of a log without a result right after them. */
function openCalls(entries: readonly SessionEntry[]): readonly string[] {
  const messages = entries.filter((entry) => entry.type === "message");
  return messages.flatMap((entry, index) => {
    const next = messages[index + 1]?.message;
    const answered = next?.role === "tool" ? next.content.map((part) => part.tool_call_id) : [];
    return callsOf(entry).filter((id) => !answered.includes(id));
  });
}

function callsOf(entry: SessionEntry | undefined): readonly string[] {
  if (entry?.type !== "message" || entry.message.role !== "assistant") return [];
  return entry.message.content.flatMap((part) => (part.type === "tool_call" ? [part.tool_call_id] : []));
}

/** The prompts that are missing in a log, or lack their answers. */
function unanswered(entries: readonly SessionEntry[], prompts: readonly string[]): readonly string[] {
  const texts = new Set(entries.map((entry) => (entry.type === "message" ? textOf(entry.message) : "")));
  return prompts.filter((prompt) => !texts.has(prompt) || !texts.has(answerTo(prompt)));
}
