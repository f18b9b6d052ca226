import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { AgentProfile } from "../../agents/define/agent-profile.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { rounds } from "../../testing/campaign.suite.ts";
import { forTests } from "../../testing/for-tests.ts";
import { startProviderServer } from "../../testing/provider-server/provider-server.ts";
import { answerCall, answerText, openProjectSession } from "./testing/open-project-session.ts";

const server = forTests(startProviderServer, ({ close }) => close());

const files = {
  "AGENTS.md": "# Shop\n\nBe brief.\n",
  "packages/api/AGENTS.md": "## Api\n\nANSWER-IN-JSON\n",
  "packages/api/a.ts": "export {};\n",
  ".cursor/rules/api.mdc": "---\nglobs: packages/api/**/*.ts\n---\nCHECK-EVERY-INPUT\n",
  ".cursor/rules/web.mdc": "---\nglobs: web/**/*.ts\n---\nNO-INLINE-STYLES\n",
  "web/c.ts": "export {};\n",
  ".agents/skills/triage.md": "---\nname: triage\ndescription: Sorts.\n---\n\nSORT-BY-DATE\n",
  ".agents/roles/critic.md": "---\nname: critic\n---\n\nFIND-FAULTS\n",
  "specs/pay.md": "# Pay\n\n- REQ-1: The system shall send a receipt.\n",
};

const echo = {
  name: "echo",
  description: "Says it again.",
  input: { type: "object" },
  execute: () => "again",
};

/** An application on its files; opened again, it is another process as far as its sessions can tell. */
const open = (model: string, defaults: AgentProfile = {}) =>
  openProjectSession({
    files,
    server,
    environment: { TOKEN: "granted-secret-1" },
    defaults: { model, allowShell: true, allowedCommands: ["echo *"], python: true, ...defaults },
  });

/** A request as the pieces that a provider's cache goes by, in their order: tools, system prompt, messages. */
function pieces(body: unknown): readonly string[] {
  const { tools, system, systemInstruction, instructions, messages, input, contents } = body as Readonly<
    Record<string, unknown>
  >;
  const list = (messages ?? input ?? contents) as readonly Readonly<Record<string, unknown>>[];
  const parts = list.flatMap((message) => {
    const content = message.content ?? message.parts;
    if (!Array.isArray(content) || messages === undefined) return [message];
    // The next text of the same role becomes a part of the same message.
    return content.map((part) => ({ ...message, content: [part] }));
  });
  // Marks are where a cache may end, and no part of what it holds.
  const unmarked = (key: string, value: unknown): unknown => (key === "cache_control" ? undefined : value);
  return [tools, system ?? systemInstruction ?? instructions, ...parts].map(
    (piece) => JSON.stringify(piece, unmarked) ?? "",
  );
}

/** The requests of the session itself, without those of its tasks and summaries. */
const ownRequests = (): readonly (readonly string[])[] =>
  server.requests.map(pieces).filter((request) => request.some((piece) => piece.includes("BEGIN-HERE")));

function expectStable(requests: readonly (readonly string[])[]): void {
  for (const [index, request] of requests.entries()) {
    const before = requests[index - 1] ?? [];
    expect(request.slice(0, before.length), `request ${index + 1}`).toEqual(before);
  }
}

const changesIn = (events: readonly KitEvent[]): readonly (readonly string[] | undefined)[] =>
  events.flatMap((event) =>
    event.type === "turn_request" && event.prefix !== undefined && event.task_id === undefined
      ? [event.prefix.changed]
      : [],
  );

const models = ["anthropic/claude-sonnet-4-6", "openai/gpt-5.1", "google/gemini-2.5-pro", "local/m"] as const;

test.each(models.slice(0, rounds(2, models.length)))(
  "over all that a session does, each prompt of %s begins with the one before",
  async (model) => {
    const { session, start, root, events } = await open(model);
    server.script([
      // Files, and the guidelines for them.
      answerCall("read", { path: "packages/api/a.ts" }),
      answerCall("read", { path: "web/c.ts" }),
      answerText("Read."),
      // The specs, a command, Python, a tool that does not exist, arguments that do not fit.
      answerCall("spec_search", { q: "receipt" }),
      answerCall("bash", { command: "echo 1" }),
      answerCall("run_code", { code: "1 + 1" }),
      answerCall("nothing_like_it", {}),
      answerCall("read", { path: 5 }),
      answerText("Tried."),
      // A task, in a session of its own.
      answerCall("task", { prompt: "Look around." }),
      answerText("Looked."),
      answerText("Done."),
      // A skill, an image, a secret.
      answerText("Sorted."),
      answerText("Seen."),
      answerText("Kept."),
      // A call that fails for good.
      { status: 400, message: "no" },
      // Typed output that has to be repaired.
      answerText("no JSON"),
      answerText("[5]"),
      // The project's instructions become others, go away, and come again.
      answerText("Changed."),
      answerText("Gone."),
      // Another process.
      answerText("Restarted."),
      answerText("Again."),
    ]);
    await session.prompt("BEGIN-HERE: read.");
    await session.prompt("Try all.");
    await session.prompt("Hand it on.");
    await session.skill("triage");
    await session.prompt("See.", { images: [{ data: new Uint8Array([1]), media_type: "image/png" }] });
    await session.prompt("Keep.", { secrets: ["TOKEN"] });
    await session.shell("echo 2");
    await expect(session.prompt("Fail.")).rejects.toMatchObject({ code: "model_error" });
    await session.prompt("How much?", { result: { type: "array" } });
    await writeFile(join(root, "AGENTS.md"), "# Shop\n\nBE-LONG-FROM-NOW\n");
    await session.prompt("And now?");
    await rm(join(root, "AGENTS.md"));
    await session.prompt("And without?");
    const reopened = await start();
    await reopened.prompt("Who are you?");
    await writeFile(join(root, "AGENTS.md"), "# Shop\n\nBE-BRIEF-AGAIN\n");
    await reopened.prompt("And again?");
    const requests = ownRequests();
    expect(requests.length).toBeGreaterThan(18);
    expectStable(requests);
    expect(changesIn(events).filter((changed) => changed !== undefined)).toEqual([]);
    // The prompt states the changes behind the history, in their order.
    const [first, last] = [requests[0]?.join() ?? "", requests.at(-1)?.join() ?? ""];
    expect(first).toContain("Be brief.");
    expect(last).toMatch(/Be brief\..*BE-LONG-FROM-NOW.*no longer applies.*BE-BRIEF-AGAIN/s);
  },
);

test.each([
  ["a role", { role: "critic" }, ["role"]],
  ["a tool of its own", { tools: [echo] }, ["tools"]],
  ["another model", { model: "local/other" }, ["model"]],
  ["another thinking level", { thinkingLevel: "high" }, ["settings"]],
] as const)("%s for one call begins another prompt, and the event says so", async (_, options, changed) => {
  const { session, events } = await open("local/m");
  server.script([answerText("1"), answerText("2"), answerText("3"), answerText("4")]);
  await session.prompt("BEGIN-HERE");
  await session.prompt("Other.", options);
  await session.prompt("As before.");
  await session.prompt("Still.");
  expect(changesIn(events)).toEqual([undefined, changed, changed, undefined]);
  const [one, , three, four] = ownRequests();
  expectStable([one ?? [], three ?? [], four ?? []]);
});

test("a prompt that is retried after a failure continues with the same messages, whatever preceded them", async () => {
  const { session, root } = await open("local/m");
  server.script([answerText("1"), { status: 400, message: "no" }, answerText("2")]);
  await session.prompt("BEGIN-HERE");
  await writeFile(join(root, "AGENTS.md"), "# Shop\n\nBE-LONG-FROM-NOW\n");
  const again = { operationId: "op-1" };
  await expect(session.prompt("MY-WORDS", again)).rejects.toMatchObject({ code: "model_error" });
  const { text, messages } = await session.prompt("MY-WORDS", again);
  expect(text).toBe("2");
  expect(messages[0]?.content).toEqual([{ type: "text", text: "MY-WORDS" }]);
  const requests = ownRequests();
  expectStable(requests);
  expect(
    requests
      .at(-1)
      ?.join()
      .match(/MY-WORDS|BE-LONG-FROM-NOW/g),
  ).toEqual(["BE-LONG-FROM-NOW", "MY-WORDS"]);
});

test("notes after the history move to the system prompt when the history is compacted", async () => {
  const { session, root, events } = await open("local/m", { compaction: { keepRecentTokens: 0 } });
  server.script([
    answerText("1"),
    answerText("2"),
    answerText("SUMMED-UP"),
    answerText("3"),
    answerText("4"),
  ]);
  await session.prompt(`BEGIN-HERE ${"word ".repeat(2_000)}`);
  await writeFile(join(root, "AGENTS.md"), "# Shop\n\nBE-LONG-FROM-NOW\n");
  await session.prompt("And now?");
  expect(await session.compact()).toBe(true);
  await session.prompt("Go on.");
  await session.prompt("And on.");
  const [three, four] = server.requests.slice(3).map(pieces);
  expect(three?.[2]).toContain("BE-LONG-FROM-NOW");
  expect(three?.join()).not.toContain("Be brief.");
  expectStable([three ?? [], four ?? []]);
  expect(changesIn(events)).toEqual([
    undefined,
    undefined,
    ["compaction", "project_instructions"],
    undefined,
  ]);
});
