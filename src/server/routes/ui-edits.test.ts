import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { rounds } from "../../testing/campaign.suite.ts";
import { readAnswer } from "../testing/read-ui-stream.ts";
import { serveForTests } from "../testing/serve-for-tests.ts";

const served = serveForTests();
afterAll(() => expect(served.errors).toEqual([]));

interface Shown {
  readonly id: string;
  readonly role: string;
  readonly parts: readonly { readonly type: string; readonly text?: string }[];
}

const textsOf = (parts: Shown["parts"]): string => parts.map(({ text = "" }) => text).join("");

/** The chat as a page starts with it. */
async function pageOf(session: string): Promise<readonly Shown[]> {
  return (await served.send(`/agents/echo/page/ui/${session}/messages`)).body.messages;
}

/** The texts of the page, and those that the model has. */
async function bothOf(session: string): Promise<{ readonly page: string[]; readonly model: string[] }> {
  const { body } = await served.send(`/agents/echo/page/history?session=${session}&limit=200`);
  return {
    page: (await pageOf(session)).map(({ parts }) => textsOf(parts)),
    model: body.messages.map(({ content }: { content: Shown["parts"] }) => textsOf(content)),
  };
}

/** Sends a user's message, or edits one with `messageId`, or asks again with `trigger`, and reads the answer. */
async function sendMessage(session: string, { id, text }: { id: string; text: string }, more: object = {}) {
  const messages = [{ id, role: "user", parts: [{ type: "text", text }] }];
  const body = { id: session, trigger: "submit-message", messages, ...more };
  return await readAnswer(await served.stream("/agents/echo/page/ui", { body }));
}

test("a page has no message that an edit before a regenerated message has left behind", async () => {
  await sendMessage("nested", { id: "m1", text: "one" });
  await sendMessage("nested", { id: "m1", text: "one" }, { trigger: "regenerate-message", request_id: "r1" });
  await sendMessage("nested", { id: "m1", text: "two" }, { messageId: "m1", request_id: "r2" });
  expect(await bothOf("nested")).toEqual({ page: ["two", "two"], model: ["two", "two"] });
});

let chats = 0;
const stepsOf = fc.array(fc.tuple(fc.constantFrom("say", "edit", "ask again"), fc.nat()), {
  minLength: 6,
  maxLength: 14,
});

test("a page has the messages of the model, after all edits and regenerations", async () => {
  const property = fc.asyncProperty(stepsOf, async (steps) => {
    const session = `random-${++chats}`;
    for (const [step, [action, number]] of steps.entries()) {
      const said = (await pageOf(session)).filter(({ role }) => role === "user");
      const at = said[number % (said.length || 1)];
      const request_id = `r${step}`;
      if (action === "say" || at === undefined)
        await sendMessage(session, { id: `m${step}`, text: `said ${step}` });
      else if (action === "edit")
        await sendMessage(session, { id: at.id, text: `edited ${step}` }, { messageId: at.id, request_id });
      else
        await sendMessage(
          session,
          { id: at.id, text: textsOf(at.parts) },
          { trigger: "regenerate-message", request_id },
        );
      const { page, model } = await bothOf(session);
      expect(page).toEqual(model);
    }
  });
  await fc.assert(property, { numRuns: rounds(2, 30), endOnFailure: true });
});

test("a message that no page sent is edited again and again, and each repeated request is the same work", async () => {
  await served.send("/agents/echo/page", { body: { message: "before", session: "foreign" } });
  await served.send("/agents/echo/page", { body: { message: "asked", session: "foreign" } });
  const [, , { id = "" } = {}] = await pageOf("foreign");
  expect(id).toMatch(/^user-op_/);
  for (const text of ["changed", "changed twice"]) {
    const edit = { messageId: id, request_id: text };
    const first = await sendMessage("foreign", { id, text }, edit);
    expect((await sendMessage("foreign", { id, text }, edit)).message).toEqual(first.message);
    expect((await pageOf("foreign")).map((message) => message.id).slice(2)).toEqual([id, first.message.id]);
    expect((await bothOf("foreign")).model).toEqual(["before", "before", text, text]);
  }
});
