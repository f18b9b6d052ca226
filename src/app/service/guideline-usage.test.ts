import { writeFile } from "node:fs/promises";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { openProject } from "../../project/open-project.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { createReceiptReader, isRule } from "../../protocol/read-records.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import { toFullStore } from "../../stores/full-store.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { rounds } from "../../testing/campaign.suite.ts";
import { forTests } from "../../testing/for-tests.ts";
import { startProviderServer } from "../../testing/provider-server/provider-server.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { answerCall, answerText, openProjectSession } from "../runtime/testing/open-project-session.ts";
import { readGuidelineUsage } from "./guideline-usage.ts";

const server = forTests(startProviderServer, ({ close }) => close());

const files = {
  "AGENTS.md": "# Shop\n\nBe brief.\n\n## Money\n\nWhole cents.\n\n## Tests\n\nBeside the file.\n",
  ".cursor/rules/api.mdc": "---\nglobs: api/**/*.ts\n---\nNo classes.\n",
  "web/AGENTS.md": "## Pages\n\nOne heading.\n",
  "never/AGENTS.md": "## Unread\n\nNever read.\n",
  "api/a.ts": "export {};\n",
  "web/b.ts": "export {};\n",
};

async function rulesIn(root: string) {
  const project = await openProject({ root, indexFile: ":memory:" });
  await project.ready();
  const rules = project.guidelines.rules();
  await project.close();
  return rules;
}

async function usageOf(root: string, store: InMemorySessionStore, since = 0) {
  const known = await rulesIn(root);
  const rules = async () => known;
  return await readGuidelineUsage(
    { sessions: { list: async (page) => toFullStore(store).listAll(page) }, store, rules },
    { since },
  );
}

/** The same sums, from the events of the turns. */
function replay(events: readonly KitEvent[]) {
  const read = createReceiptReader();
  const lists = new Map<string, ReturnType<typeof read>>();
  const sums = new Map<string, { turns: number; tokens: number }>();
  let [turns, input] = [0, 0];
  for (const event of events) {
    const { turn_id = "" } = event;
    if (event.type === "turn_request" && event.receipt !== undefined)
      lists.set(turn_id, read(turn_id, event.receipt));
    if (event.type !== "turn" || event.purpose !== "agent") continue;
    turns += 1;
    input += event.usage.input;
    const items = (lists.get(turn_id) ?? []).filter(isRule);
    for (const id of new Set(items.map((item) => item.id))) {
      const sum = sums.get(id) ?? { turns: 0, tokens: 0 };
      for (const item of items) if (item.id === id) sum.tokens += item.tokens;
      sums.set(id, { ...sum, turns: sum.turns + 1 });
    }
  }
  return { turns, input, sums };
}

const step = fc.constantFrom(
  "talk",
  "api/a.ts",
  "web/b.ts",
  "AGENTS.md",
  "rules",
  "restart",
  "compact",
  "edit",
);

test("the sums of any work equal a replay of its events", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
      const {
        root,
        session: first,
        start,
        events,
        store,
      } = await openProjectSession({
        files,
        server,
        defaults: { model: "local/m", compaction: { keepRecentTokens: 0 } },
      });
      let session = first;
      for (const [index, each] of steps.entries()) {
        if (each === "restart") session = await start();
        else if (each === "edit") await write(root, index);
        else if (each === "compact") {
          server.script([answerText("A summary.")]);
          await session.compact();
        } else {
          const call =
            each === "rules"
              ? answerCall("guidelines_for", { file: "api/a.ts" })
              : answerCall("read", { path: each });
          server.script(each === "talk" ? [answerText("Yes.")] : [call, answerText("Read.")]);
          await session.prompt("Go on.");
        }
      }
      const usage = await usageOf(root, store);
      const { turns, input, sums } = replay(events);
      expect([usage.turns, usage.input_tokens]).toEqual([turns, input]);
      const used = usage.rules.filter((rule) => rule.turns > 0);
      expect(new Map(used.map((rule) => [rule.rule, { turns: rule.turns, tokens: rule.tokens }]))).toEqual(
        sums,
      );
      expect(usage.rules.filter((rule) => rule.turns === 0).map(({ rule }) => rule)).toContain(
        "never/AGENTS.md#unread",
      );
    }),
    { numRuns: rounds(4, 100) },
  );
});

const write = async (root: string, index: number): Promise<void> => {
  await writeFile(`${root}/AGENTS.md`, `# Shop\n\n## Money\n\nWhole cents, ${"truly ".repeat(index + 1)}.\n`);
};

const key = { agent: "a", instance_id: "1", session: "s" };
const usageAt = (input: number) => ({
  input,
  output: 1,
  cache_read: 0,
  cache_write: 0,
  total_tokens: input + 1,
  cost: { input: input / 1_000, output: 1, cache_read: 0, cache_write: 0, total: 1 },
});

/** An answer of the log, with the rules of its receipt as a version of kit before sections wrote them. */
const answer = (at: string, rules?: readonly string[]): SessionEntry => ({
  version: 1,
  type: "message",
  operation_id: "op_1",
  message: {
    role: "assistant",
    content: [],
    timestamp: at,
    model: "m",
    finish_reason: "stop",
    usage: usageAt(100),
  },
  ...(rules && {
    turn: {
      turn_id: `t${at}`,
      prefix: { digest: "p" },
      parts: {},
      receipt: {
        digest: `d${at}`,
        items: rules.length,
        tokens: 10 * rules.length,
        added: rules.map((id) =>
          id.includes(".")
            ? { kind: "instructions", id, file: id, line: 1, why: "instructions of the project", tokens: 10 }
            : { kind: "guideline", id, file: "AGENTS.md", line: 5, why: "applies to src/a.ts", tokens: 10 },
        ),
      },
    },
  }),
});

test("receipts of older versions count, a fork counts once, and older turns do not", async () => {
  await using repository = await createTemporaryRepository(files);
  const money = (await rulesIn(repository.root)).find(({ id }) => id === "AGENTS.md#money");
  const store = new InMemorySessionStore();
  const entries = [
    answer("2026-11-01T00:00:00.000Z", ["AGENTS.md"]),
    answer("2026-11-20T00:00:00.000Z"),
    answer("2026-11-21T00:00:00.000Z", ["AGENTS.md", money?.guideline_id ?? "", "0123456789abcdef"]),
  ];
  const fork = {
    version: 1,
    type: "note",
    name: "fork",
    value: { without: [] },
    timestamp: "2026-11-22T00:00:00.000Z",
  } as const;
  store.append({ key, expected: 0, entries });
  store.append({
    key: { ...key, session: "f" },
    expected: 0,
    entries: [...entries, fork, answer("2026-11-22T00:00:00.000Z")],
  });
  const usage = await usageOf(repository.root, store, Date.parse("2026-11-10"));
  expect(usage).toMatchObject({ sessions: 2, turns: 3, input_tokens: 300 });
  const rows = Object.fromEntries(usage.rules.map((row) => [row.rule, row]));
  expect(rows["AGENTS.md"]).toMatchObject({
    in_project: true,
    sessions: 2,
    turns: 3,
    tokens: 30,
    share: 0.1,
    last_shown: "2026-11-22T00:00:00.000Z",
  });
  expect(rows["AGENTS.md"]?.cost).toBeCloseTo(0.03);
  expect(rows["AGENTS.md#money"]).toMatchObject({
    title: "Money",
    sessions: 2,
    turns: 2,
    why: ["applies to src/a.ts"],
  });
  expect(rows["0123456789abcdef"]).toMatchObject({ in_project: false, turns: 2 });
  expect(rows["web/AGENTS.md#pages"]).toMatchObject({ sessions: 0, turns: 0, tokens: 0, why: [] });
});
