import { expect, test } from "vitest";
import type { AgentProfile } from "../../agents/define/agent-profile.ts";
import { fromKept, instructionsWithout, rulesLeftOut } from "../../agents/log/left-out-rules.ts";
import { stateOf } from "../../agents/log/session-state.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { forTests } from "../../testing/for-tests.ts";
import { startProviderServer } from "../../testing/provider-server/provider-server.ts";
import { answerCall, answerText, openProjectSession } from "./testing/open-project-session.ts";

const server = forTests(startProviderServer, ({ close }) => close());

const files = {
  "AGENTS.md": "# Shop\n\nCANARY-SHOP\n\n## Money\n\nCANARY-MONEY\n\n## Tests\n\nCANARY-TESTS\n",
  "CLAUDE.md": "## House\n\nCANARY-HOUSE\n",
  ".cursor/rules/api.mdc": "---\nglobs: api/**/*.ts\n---\nCANARY-API\n",
  "web/AGENTS.md": "## Pages\n\nCANARY-PAGES\n\n## Forms\n\nCANARY-FORMS\n",
  "api/a.ts": "export {};\n",
  "web/b.ts": "export {};\n",
};

const open = (defaults: AgentProfile = {}) =>
  openProjectSession({ files, server, defaults: { model: "local/m", ...defaults } });

const rules = ["AGENTS.md#money", "CLAUDE.md", ".cursor/rules/api.mdc", "web/AGENTS.md#forms"];
const leftOut = ["MONEY", "HOUSE", "API", "FORMS"];
const kept = ["SHOP", "TESTS", "PAGES"];

/** Which canaries the requests of the last script had. */
const seen = (): readonly string[] => {
  const text = JSON.stringify(server.requests);
  return [...leftOut, ...kept].filter((canary) => text.includes(`CANARY-${canary}`));
};

const receipts = (events: readonly KitEvent[]) =>
  events.flatMap((event) => (event.type === "turn_request" ? (event.receipt ?? []) : []));

const work = () => [
  answerCall("read", { path: "api/a.ts" }),
  answerCall("read", { path: "web/b.ts" }),
  answerCall("guidelines_for", { file: "api/a.ts" }),
  answerCall("guidelines_for", { file: "web/b.ts" }),
  answerCall("task", { prompt: "Which rules have you?" }),
  answerText("None."),
  answerText("Done."),
];

test("a session leaves out sections, files and rules of later turns, in its prompts, tools and tasks, also after a restart", async () => {
  const { session, start, events, store } = await open();
  server.script([...work(), answerText("Again.")]);
  await session.prompt("Look.", { omitRules: rules });
  await (await start()).prompt("Still without?");
  expect(seen()).toEqual(kept);
  const [first, ...others] = receipts(events);
  expect(first?.left_out).toEqual(rules);
  expect(others.every(({ left_out }) => left_out?.join() === rules.join())).toBe(true);
  const listedIds = receipts(events).flatMap(({ added = [] }) => added.map(({ id }) => id));
  expect(listedIds).toEqual(expect.arrayContaining(["AGENTS.md", "AGENTS.md#tests", "web/AGENTS.md#pages"]));
  expect(listedIds.filter((id) => rules.includes(id))).toEqual([]);
  // The log says it, and a compaction keeps it.
  const key = { agent: "default", instance_id: "1", session: "default" };
  const timestamp = "2026-11-30T10:00:00.000Z";
  const entries = store.read(key);
  const compaction = {
    version: 1,
    type: "compaction",
    summary: "…",
    keep_from: entries.length,
    tokens_before: 9,
    tokens_after: 1,
    timestamp,
  } as const;
  expect([...rulesLeftOut(stateOf(key, [...entries, compaction]))]).toEqual(rules);
});

test("an agent's definition leaves out rules of all its sessions and tasks", async () => {
  const { session } = await open({ omitRules: rules });
  server.script(work());
  await session.prompt("Look.");
  expect(seen()).toEqual(kept);
});

test("an unknown rule is refused with the nearest names, and leaves nothing behind", async () => {
  const { session, store } = await open();
  const refused = (omitRules: readonly string[]) => expect(session.prompt("Look.", { omitRules })).rejects;
  await refused(["AGENTS.md#monney"]).toMatchObject({
    code: "invalid_request",
    message: 'The project has no rule "AGENTS.md#monney"; did you mean AGENTS.md#money?',
  });
  await refused(["web/AGENTS.md#pricing-of-books"]).toThrow("web/AGENTS.md#pages or web/AGENTS.md#forms");
  await refused(["api/a.ts"]).toThrow("has no rule");
  expect(store.read({ agent: "default", instance_id: "1", session: "default" })).toEqual([]);
  const { session: ofAgent } = await open({ omitRules: ["AGENTS.md#monney"] });
  await expect(ofAgent.prompt("Look.")).rejects.toThrow("did you mean AGENTS.md#money?");
});

test("a session that has begun with a rule cannot leave it out, and one that left it out need not say so again", async () => {
  const { session } = await open();
  server.script([answerText("1"), answerText("2"), answerText("3")]);
  await session.prompt("Begin.", { omitRules: ["AGENTS.md#money"] });
  await session.prompt("Go on.", { omitRules: ["AGENTS.md#money"] });
  await expect(session.prompt("Go on.", { omitRules: ["CLAUDE.md"] })).rejects.toThrow(
    "A session leaves out rules from its first turn on",
  );
});

test("instructions in logs of older versions are whole files, which can be left out", () => {
  const text =
    '<instructions source="AGENTS.md">\n# A\n\n## B\n</instructions>\n\n<instructions source="CLAUDE.md">\nC\n</instructions>';
  const old = fromKept({
    text,
    files: [
      { path: "AGENTS.md", tokens: 12 },
      { path: "CLAUDE.md", tokens: 9 },
    ],
  });
  expect(old.parts.map(({ start, end }) => text.slice(start, end))).toEqual(["# A\n\n## B", "C"]);
  expect(instructionsWithout(old, new Set(["AGENTS.md"])).text).toBe(
    '<instructions source="CLAUDE.md">\nC\n</instructions>',
  );
  expect(instructionsWithout(old, new Set(["other.md"]))).toBe(old);
});
