import { expect, onTestFinished, test } from "vitest";
import type { AgentDefinition } from "../../agents/define/create-agent.ts";
import { KitClient } from "../../client/kit-client.ts";
import { collectEvents } from "../testing/read-event-stream.ts";
import { serveForTest, serveForTests } from "../testing/serve-for-tests.ts";
import { serveService } from "../testing/serve-service.ts";

// A hook answers in the model's place, so that the reply fits the schema.
const typed = (text: string): string => `export const triggers = { webhook: true };
export default {
  kind: "kit.agent",
  describe: async () => ({
    output: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
    hooks: { afterModel: () => ({ content: [{ type: "text", text: ${JSON.stringify(text)} }] }) },
  }),
};
`;

const served = serveForTests({
  files: { "src/agents/typed.ts": typed('{"n": 3}'), "src/agents/wrong.ts": typed("three") },
});

test("the reply of an agent with an output schema contains the typed result, also in a stream", async () => {
  const { status, body } = await served.send("/agents/typed/a", { body: { message: "Count." } });
  expect(status).toBe(200);
  expect(body.result).toMatchObject({ text: '{"n": 3}', result: { n: 3 } });
  const events = await collectEvents(await served.stream("/agents/typed/b", { body: { message: "Count." } }));
  expect(events.at(-1)).toMatchObject({ event: "result", data: { result: { result: { n: 3 } } } });
});

test("an answer that never matches the output schema is an error", async () => {
  const { status, body } = await served.send("/agents/wrong/a", { body: { message: "Count." } });
  expect(status).toBeGreaterThanOrEqual(400);
  expect(body.error.type).toBe("typed_output");
});

test("hooks of kit.config.ts run for every agent, before the agent's hooks", async () => {
  const adds = (word: string): string =>
    `{ afterModel: ({ content }) => ({ content: [{ type: "text", text: content[0].text + "${word}" }] }) }`;
  const agent = `export const triggers = { webhook: true };
export default { kind: "kit.agent", describe: async () => ({ hooks: ${adds(" agent")} }) };
`;
  const config = `export default { agent: { hooks: ${adds(" project")} } };\n`;
  const other = await serveForTest({ files: { "kit.config.ts": config, "src/agents/hooked.ts": agent } });
  const textOf = async (name: string): Promise<string> =>
    (await other.send(`/agents/${name}/a`, { body: { message: "Go" } })).body.result.text;
  expect([await textOf("hooked"), await textOf("echo")]).toEqual(["Go project agent", "Go project"]);
});

test("partial results reach readers of SSE, WebSockets, the client and the instance's events", async () => {
  const output = `{ "~standard": { version: 1, vendor: "test", validate: (value) =>
    typeof value.n === "number" ? { value } : { issues: [{ message: "n is missing" }] } } }`;
  const other = await serveService({
    files: {
      "src/agents/grows.ts": `export const triggers = { webhook: true };
export default { kind: "kit.agent", describe: async () => ({ output: ${output} }) };
`,
    },
  });
  onTestFinished(() => other.close());
  // The model says it again, with the request for a result.
  const message = '{"n": 3, "said": "two words"}';
  const values = [{ n: 3 }, { n: 3, said: "two " }, { n: 3, said: "two words" }];
  const { agents } = new KitClient<{
    agents: { grows: { default: AgentDefinition<{ n: number; said?: string }> } };
    workflows: object;
  }>({ baseUrl: other.url });
  const stream = agents.stream("grows", { id: "1", message });
  const streamed: { readonly n?: number | undefined }[] = [];
  for await (const value of stream.partialResults()) streamed.push(value);
  expect(streamed.slice(1)).toEqual(values);
  const { result } = await stream.result();
  expect(result.n.toFixed()).toBe("3");
  await using connection = await agents.connect("grows", { id: "2" });
  const received: unknown[] = [];
  for await (const value of connection.prompt(message).partialResults()) received.push(value.said);
  expect(received.at(-1)).toBe("two words");
  const sent = await collectEvents(await other.stream("/agents/grows/3", { body: { message } }));
  const partials = sent.flatMap(({ data }) => (data.partial_result === undefined ? [] : [data]));
  expect(partials.map(({ partial_result }) => partial_result).slice(1)).toEqual(values);
  // From the log, where the turn is over: whoever comes back gets what is new.
  for (const { index } of [{ index: 0 }, ...partials.slice(0, -1)]) {
    await expect
      .poll(async () => {
        const page = await other.service.engine.events.read("agent/grows/3", { after: index });
        return page
          .flatMap((event) => (event.type === "text_delta" ? [event.partial_result] : []))
          .findLast(Boolean);
      })
      .toEqual(values.at(-1));
  }
});
