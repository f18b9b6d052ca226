import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { Message } from "../../src/protocol/message.ts";
import type { ProviderAnswer } from "../../src/testing/provider-server/protocols.ts";
import { chosenEngine } from "./harness/engines.ts";
import { type Kit, Kits } from "./harness/kits.ts";

const calls = 4;

/** Reports the change that it finds, complete or not, and makes the next one: three files and a line of a list, in one call. */
const command = (label: string, ms: number): string =>
  [
    'echo "found $(tail -n 1 list 2>/dev/null || echo none): $(for i in 1 2 3; do uniq -c part$i 2>/dev/null; done | tr -s " \\n" " ")"',
    `for i in 1 2 3; do yes ${label} | head -n $((60000 / i)) > part$i; sleep ${ms / 3_000}; done`,
    `echo ${label} >> list`,
    `echo "made ${label}"`,
  ].join("\n");

/** `build 7 300`: four calls of 300 ms each; `list`: the content of the workspace. */
function script(prompt: string, results: number): ProviderAnswer {
  const [what, number, ms] = prompt.split(" ");
  const call = (text: string): ProviderAnswer => ({
    toolCall: {
      id: `call_${prompt.replaceAll(" ", "_")}_${results}`,
      name: "bash",
      args: JSON.stringify({ command: text }),
    },
  });
  if (what === "list" && results === 0) return call("cat list");
  if (what === "build" && results < calls)
    return call(command(`${number}-${results}`.padStart(6, "0"), Number(ms)));
  return { text: `Done with ${prompt}.` };
}

let cluster: Kits;
let kits: readonly [Kit, Kit];
let count = 0;

beforeAll(async () => {
  cluster = await Kits.start(chosenEngine(), 2, {
    script,
    toml: '[sandbox]\npersist = "store"\nisolation = "off"',
  });
  kits = cluster.kits as unknown as typeof kits;
});

afterEach(() => cluster.heal());

afterAll(() => cluster?.stop());

/** Sends inputs to several sessions until it is stopped; returns their names once all inputs have ended. */
function build(ms: number): { readonly lines: readonly string[]; readonly stop: () => Promise<void> } {
  count += 1;
  const lines = Array.from({ length: 3 }, (_, line) => `build${count}-${line}`);
  let isOver = false;
  const sent = lines.map(async (line) => {
    for (let number = 1; !isOver || number <= 2; number += 1) {
      const { dispatch_id } = await cluster.ask(`/agents/builder/${line}/dispatch`, {
        body: { input: `build ${number} ${ms}` },
        key: `${number}`,
      });
      await cluster.until(async () => (await cluster.engine.open(cluster.database, [dispatch_id])) === 0);
    }
  });
  return {
    lines,
    async stop() {
      isOver = true;
      await Promise.all(sent);
    },
  };
}

/** Waits for a moment in which parts of a change are in the database, but not the change. */
async function inTheMiddleOfASave(): Promise<void> {
  await cluster.until(async () => {
    const { rows } = await cluster.database.query(
      `SELECT 1 FROM kit.workspace_pieces p LEFT JOIN kit.workspaces w USING (agent, instance_id, session)
       WHERE w.manifest IS NULL OR position(p.name IN w.manifest) = 0 LIMIT 1`,
    );
    return rows.length > 0;
  });
}

interface Call {
  readonly label: string;
  /** `undefined` if the call was interrupted. */
  readonly result: string | undefined;
}

const textOf = (content: Message["content"]): string => JSON.stringify(content);

/** The calls in the history of a session, in order. */
async function callsOf(line: string): Promise<readonly Call[]> {
  const { messages }: { readonly messages: readonly Message[] } = await cluster.ask(
    `/agents/builder/${line}/history`,
  );
  return messages.flatMap((message, index) => {
    const label =
      message.role === "assistant" ? /echo (0*\d+-\d) >> list/.exec(textOf(message.content))?.[1] : undefined;
    if (label === undefined) return [];
    const result = textOf(messages[index + 1]?.content ?? []);
    return [{ label, result: result.includes(`made ${label}`) ? result : undefined }];
  });
}

/**
 * Reads the histories, and the content of the workspaces. Each call finds the change of the last call with a result, or of one that
 * was interrupted after that, and finds it complete; the list has every change with a result, once, in order.
 */
async function findings(lines: readonly string[]): Promise<readonly string[]> {
  const violations: string[] = [];
  for (const line of lines) {
    const { dispatch_id } = await cluster.ask(`/agents/builder/${line}/dispatch`, {
      body: { input: "list" },
      key: `list ${count}`,
    });
    await cluster.until(async () => (await cluster.engine.open(cluster.database, [dispatch_id])) === 0);
    const made = await callsOf(line);
    if (made.filter(({ result }) => result !== undefined).length < calls)
      violations.push(`${line}: hardly a call`);
    let possible = new Set(["none"]);
    for (const { label, result } of made) {
      if (result === undefined) {
        possible.add(label);
        continue;
      }
      const [, seen = "", parts = ""] = /found (\S+): ([^"\\]*)/.exec(result) ?? [];
      const complete =
        seen === "none" ? "" : [1, 2, 3].map((part) => `${Math.floor(60_000 / part)} ${seen}`).join(" ");
      if (!possible.has(seen))
        violations.push(`${line}: ${label} found ${seen}, not ${[...possible].join(" or ")}`);
      else if (parts.trim() !== complete) violations.push(`${line}: ${label} found ${seen} and ${parts}`);
      possible = new Set([label]);
    }
    const { messages } = await cluster.ask(`/agents/builder/${line}/history`);
    const listed = textOf(messages.at(-2)?.content).match(/0*\d+-\d/g) ?? [];
    const labels = listed.filter((label) =>
      made.some((call) => call.label === label && call.result !== undefined),
    );
    const expected = made.flatMap(({ label, result }) => (result === undefined ? [] : [label]));
    if (labels.join() !== expected.join())
      violations.push(`${line}: listed ${labels.join()}, and made ${expected.join()}`);
  }
  return violations;
}

test("the files of every call with a result survive the kill of its node, between calls and during a save", async () => {
  const { lines, stop } = build(90);
  for (let round = 0; round < 3; round += 1) {
    const kit = kits[round % 2] as Kit;
    await (round < 2 ? inTheMiddleOfASave() : delay(300 + round * 77));
    await cluster.kill(kit);
    await delay(1_000);
    await cluster.startKit(kit);
    await cluster.untilBalanced();
  }
  await stop();
  expect(await findings(lines)).toEqual([]);
});

test("a node that was frozen during a call drops the changes of the call, and its folder gets those of the other node", async () => {
  const { lines, stop } = build(300);
  await inTheMiddleOfASave();
  cluster.freeze(kits[0]);
  await delay(5_000);
  cluster.thaw(kits[0]);
  await cluster.untilBalanced();
  await delay(500);
  await cluster.kill(kits[1]);
  await stop();
  expect(await findings(lines)).toEqual([]);
});
