import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { AgentProfile } from "../../agents/define/agent-profile.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { eventSchema } from "../../protocol/event.ts";
import { createReceiptReader } from "../../protocol/read-records.ts";
import type { ReceiptItem } from "../../protocol/receipt.ts";
import { forTests } from "../../testing/for-tests.ts";
import { startProviderServer } from "../../testing/provider-server/provider-server.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import { answerCall, answerText, openProjectSession } from "./testing/open-project-session.ts";

const server = forTests(startProviderServer, ({ close }) => close());

const files = {
  "AGENTS.md": "# Shop\n\n## House\n\nCANARY-ROOT\n",
  "packages/api/AGENTS.md": "## Api\n\nCANARY-API\n",
  "packages/api/a.ts": "export {};\n",
  ".cursor/rules/api.mdc": "---\nglobs: packages/api/**/*.ts\n---\nCANARY-CURSOR\n",
  ".cursor/rules/web.mdc": "---\nglobs: web/**/*.ts\n---\nCANARY-WEB\n",
  "web/c.ts": "export {};\n",
  ".agents/skills/triage.md": "---\nname: triage\ndescription: CANARY-TRIAGE.\n---\n\nCANARY-SORT\n",
  ".agents/skills/ship/SKILL.md": "---\nname: ship\ndescription: CANARY-SHIP.\n---\n\nCANARY-HARBOUR\n",
  ".agents/roles/critic.md": "---\nname: critic\n---\n\nCANARY-ROLE\n",
  ".kiro/specs/pay/requirements.md":
    "# Requirements\n\n### Requirement 1: Receipts\n\nWHEN a guest pays THEN the system SHALL send a receipt CANARY-PAY\n",
  ".kiro/specs/ship/requirements.md":
    "# Requirements\n\n### Requirement 1: Parcels\n\nWHEN a parcel leaves THEN the system SHALL say so CANARY-PARCEL\n",
};

/** Which item has to stand in the receipt of a turn whose prompt has the canary, and in that of no other. */
const canaries: Readonly<Record<string, Partial<ReceiptItem>>> = {
  "CANARY-AGENT": { kind: "instructions", id: "default" },
  "CANARY-ROOT": { kind: "instructions", file: "AGENTS.md" },
  "CANARY-NEW-ROOT": { file: "AGENTS.md", why: "instructions of the project, as they have changed since" },
  "CANARY-API": { kind: "guideline", file: "packages/api/AGENTS.md" },
  "CANARY-CURSOR": { kind: "guideline", file: ".cursor/rules/api.mdc" },
  "CANARY-WEB": { kind: "guideline", file: ".cursor/rules/web.mdc" },
  "CANARY-TRIAGE": { kind: "skill", id: "triage", why: "listed" },
  "CANARY-SORT": { kind: "skill", id: "triage", why: "called" },
  "CANARY-SHIP": { kind: "skill", id: "ship", why: "listed" },
  "CANARY-HARBOUR": { kind: "skill", id: "ship", why: "read" },
  "CANARY-ROLE": { kind: "role", id: "critic", file: ".agents/roles/critic.md" },
  "CANARY-PAY": { kind: "spec", file: ".kiro/specs/pay/requirements.md" },
  "CANARY-PARCEL": { kind: "spec", file: ".kiro/specs/ship/requirements.md", why: "read" },
  "CANARY-SUMMARY": { kind: "memory", id: "summary" },
  "CANARY-MEMORY": { kind: "memory", id: "memory/7" },
};

const recall = {
  name: "recall",
  description: "Recalls.",
  input: { type: "object" },
  execute: () => ({
    content: "memory/7: CANARY-MEMORY",
    shows: [{ kind: "memory", id: "memory/7", why: "recalled", tokens: 6 } as const],
  }),
};

const open = (defaults: AgentProfile = {}) =>
  openProjectSession({
    files,
    server,
    defaults: { model: "local/m", instructions: "CANARY-AGENT", tools: [recall], ...defaults },
  });

type TurnRequest = Extract<KitEvent, { type: "turn_request" }>;
const turnsIn = (events: readonly KitEvent[]): readonly TurnRequest[] =>
  events.filter((event): event is TurnRequest => event.type === "turn_request");

/** The whole list of each turn; of a call that is not of the session's own prompt, undefined. */
function listsOf(events: readonly KitEvent[]): readonly (readonly ReceiptItem[] | undefined)[] {
  const read = createReceiptReader();
  return turnsIn(events).map(({ receipt, turn_id = "" }) =>
    receipt === undefined ? undefined : read(turn_id, receipt),
  );
}

test("a receipt lists everything that the model saw of the project", async () => {
  const { session, start, root, events } = await open({ compaction: { keepRecentTokens: 0 } });
  server.script([
    answerCall("read", { path: "packages/api/a.ts" }),
    answerCall("spec_search", { q: "receipt" }),
    answerCall("guidelines_for", { file: "web/c.ts" }),
    answerCall("read", { path: ".agents/skills/ship/SKILL.md" }),
    answerCall("read", { path: ".kiro/specs/ship/requirements.md" }),
    answerCall("recall", {}),
    answerText("Done."),
    answerText("Sorted."),
    answerText("Judged."),
    answerText("Plain."),
    answerText("Changed."),
    answerText("Restarted."),
    answerText("CANARY-SUMMARY"),
    answerText("Shortened."),
  ]);
  await session.prompt("Look.");
  await session.skill("triage");
  await session.prompt("Judge.", { role: "critic" });
  await session.prompt("And without.");
  await writeFile(join(root, "AGENTS.md"), "# Shop\n\n## House\n\nCANARY-NEW-ROOT\n");
  await session.prompt("And now?");
  const reopened = await start();
  await reopened.prompt("Still there?");
  await reopened.compact();
  await reopened.prompt("What remains?");
  const lists = listsOf(events);
  expect(lists).toHaveLength(server.requests.length);
  const seen = new Set<string>();
  for (const [index, list] of lists.entries()) {
    if (list === undefined) continue;
    const prompt = JSON.stringify(server.requests[index]);
    for (const [canary, item] of Object.entries(canaries)) {
      const where = `${canary} in request ${index + 1}`;
      // The system prompt of a compacted session tells the changed file as it is, like any other.
      const reported =
        canary === "CANARY-NEW-ROOT" && index === lists.length - 1 ? canaries["CANARY-ROOT"] : item;
      if (!prompt.includes(canary)) {
        if (canary !== "CANARY-ROOT") expect(list, where).not.toContainEqual(expect.objectContaining(item));
        continue;
      }
      seen.add(canary);
      expect(list, where).toContainEqual(expect.objectContaining(reported));
    }
    // Nothing stands in it that is not there, and none of the texts.
    expect(JSON.stringify(list)).not.toContain("CANARY");
    for (const { tokens, why } of list) expect([tokens > 0, why !== ""]).toEqual([true, true]);
  }
  expect([...seen].toSorted()).toEqual(Object.keys(canaries).toSorted());
  for (const event of turnsIn(events)) expect(eventSchema.parse(event)).toEqual(event);
});

test("the first receipt has the whole list, and later ones only the additions", async () => {
  const { session, start, events, store } = await open();
  server.script([
    answerText("1"),
    answerText("2"),
    answerCall("read", { path: "packages/api/a.ts" }),
    answerText("3"),
    answerText("4"),
    answerText("5"),
  ]);
  for (let turn = 0; turn < 3; turn += 1) await session.prompt("Go on.");
  const [one, two, three, four] = turnsIn(events).map(({ receipt }) => receipt);
  const [first, , third] = turnsIn(events).map(({ turn_id }) => turn_id);
  expect(one).not.toHaveProperty("before");
  expect(two).toEqual({ digest: one?.digest, items: one?.items, tokens: one?.tokens, before: first });
  expect(three).toEqual(two);
  expect(four).toMatchObject({ before: first, items: (one?.items ?? 0) + (four?.added?.length ?? 0) });
  expect(four?.added?.map(({ why }) => why)).toEqual([
    "applies to packages/api/a.ts",
    "applies to packages/api/a.ts",
  ]);
  await session.prompt("Go on.");
  expect(third).toBeDefined();
  // The log keeps both lists at the answers that first had them, and after a restart it adds none.
  const key = { agent: "default", instance_id: "1", session: "default" };
  const logged = (): readonly unknown[] =>
    store.read(key).flatMap((entry) => (entry.type === "message" && entry.turn ? [entry.turn.receipt] : []));
  expect(logged()).toEqual([one, four]);
  await (await start()).prompt("Go on.");
  expect(logged()).toHaveLength(2);
  // A reader that follows another process only gets the whole list again.
  expect(turnsIn(events).at(-1)?.receipt).toMatchObject({ digest: four?.digest });
  expect(turnsIn(events).at(-1)?.receipt).not.toHaveProperty("before");
});

test("a receipt of many rules is bounded, and counts the omitted ones", async () => {
  const skills = Array.from({ length: 300 }, (_, index) => ({
    name: `skill-${index}`,
    description: "Does.",
    instructions: "Do.",
    file: `.agents/skills/${"x".repeat(1_000)}/${index}.md`,
  }));
  const events: KitEvent[] = [];
  const profile = { skills, onEvent: (event: KitEvent) => events.push(event) };
  const session = createTestAgent(createScriptedModel([{ text: "1" }]), profile).session();
  await session.prompt("Go on.");
  const [receipt] = turnsIn(events).map((event) => event.receipt);
  expect(receipt?.added).toHaveLength(200);
  expect(receipt?.omitted).toBe((receipt?.items ?? 0) - 200);
  expect(JSON.stringify(receipt).length).toBeLessThan(120_000);
});
