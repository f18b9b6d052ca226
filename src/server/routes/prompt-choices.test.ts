import { expect, test } from "vitest";
import { KitClient } from "../../client/kit-client.ts";
import { serveForTests } from "../testing/serve-for-tests.ts";

// Its own backend never answers: an answer shows that the call has chosen another one.
const agent = `export const triggers = { webhook: true };
const tools = [{
  name: "hand_over",
  description: "Hands over.",
  input: { type: "object" },
  execute: () => "",
}];
export default { kind: "kit.agent", describe: async () => ({
  tools,
  backend: { name: "mute", run: async () => { throw new Error("It never answers."); } },
}) };
`;
const workflow = `export async function run(ctx) {
  return await ctx.dispatch("mute", { id: "from-run", input: { n: 1 }, ...ctx.payload });
}
`;

const served = serveForTests({ files: { "src/agents/mute.ts": agent, "src/workflows/send.ts": workflow } });

const choices = { model: ["first/a", "second/b"], backend: "typed" } as const;

test("a prompt selects its backend and its models", async () => {
  const { body } = await served.send("/agents/mute/a", { body: { message: "hello", ...choices } });
  expect(body.result).toMatchObject({ text: "hello", model: { id: "first/a" } });
  const without = await served.send("/agents/mute/a", {
    body: { message: "hello", model: choices.model },
  });
  expect(without.status).toBe(500);
});

test("kit/client selects them for prompts, streams and dispatches", async () => {
  const { agents } = new KitClient({ baseUrl: served.url });
  const prompt = { id: "client", message: "hello", ...choices };
  expect((await agents.invoke("mute", prompt)).text).toBe("hello");
  expect((await agents.stream("mute", prompt).result()).model.id).toBe("first/a");
  const { dispatch_id } = await agents.dispatch("mute", { id: "client", input: { n: 1 }, ...choices });
  await served.service.engine.awaitDispatch(dispatch_id);
  const { body } = await served.send(`/dispatches/${dispatch_id}`);
  expect(body).toMatchObject({
    status: "completed",
    input: { n: 1 },
    result: { model: { id: "first/a" } },
  });
  expect(body.result.text).toContain('"n": 1');
});

test("a workflow selects them for what it dispatches", async () => {
  const { body } = await served.send("/workflows/send?wait=result", { body: choices });
  const { dispatch_id } = body.result;
  await served.service.engine.awaitDispatch(dispatch_id);
  const record = await served.send(`/dispatches/${dispatch_id}`);
  expect(record.body).toMatchObject({ status: "completed", input: { n: 1 } });
});

test("a dispatch with these options differs from the same input without them", async () => {
  const send = (more: object) =>
    served.send("/agents/echo/keyed/dispatch", {
      body: { input: "hello", ...more },
      headers: { "idempotency-key": "k" },
    });
  expect((await send(choices)).status).toBe(202);
  expect((await send(choices)).status).toBe(202);
  expect((await send({})).status).toBe(409);
});

test.each([
  [{ backend: "grpah" }, "backend"],
  [{ backend: { name: "own" } }, "backend"],
  [{ model: [] }, "model"],
  [{ model: "" }, "model"],
  [{ model: ["test/model", ""] }, "model"],
  [{ model: ["test/model", 7] }, "model"],
  [{ model: { id: "test/model" } }, "model"],
])("%j is refused before anything is accepted, with the field's name", async (wrong, field) => {
  for (const [path, body] of [
    ["mute/x", { message: "hello" }],
    ["mute/x/dispatch", { input: "hello" }],
  ] as const) {
    const { status, body: reply } = await served.send(`/agents/${path}`, { body: { ...body, ...wrong } });
    expect([status, reply.error.meta.issues[0].path.split(".")[1]]).toEqual([400, field]);
  }
});

test.each([
  [{ backend: "grpah" }, /did you mean graph\?/],
  [{ backend: { name: "own", run: async () => undefined } }, /`backend` of a dispatch must be one of typed/],
  [{ model: [] }, /`model` must be a text such as provider\/model/],
])("a program that dispatches with %o gets an error that names the fault", async (wrong, message) => {
  const target = { agent: "mute", instance_id: "program", session: "default" };
  await expect(served.service.dispatch(target, "hello", wrong as object)).rejects.toThrow(message);
});
