import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { collectEvents } from "../testing/read-event-stream.ts";
import { type ServedService, serveService } from "../testing/serve-service.ts";

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

let served: ServedService;
beforeAll(async () => {
  served = await serveService({
    files: { "src/agents/typed.ts": typed('{"n": 3}'), "src/agents/wrong.ts": typed("three") },
  });
});
afterAll(() => served.close());

test("the reply of an agent with an output has it as its result, also in a stream", async () => {
  const { status, body } = await served.send("/agents/typed/a", { body: { message: "Count." } });
  expect(status).toBe(200);
  expect(body.result).toMatchObject({ text: '{"n": 3}', result: { n: 3 } });
  const events = await collectEvents(await served.stream("/agents/typed/b", { body: { message: "Count." } }));
  expect(events.at(-1)).toMatchObject({ event: "result", data: { result: { result: { n: 3 } } } });
});

test("an answer that never fits the output of its agent fails, and says so", async () => {
  const { status, body } = await served.send("/agents/wrong/a", { body: { message: "Count." } });
  expect(status).toBeGreaterThanOrEqual(400);
  expect(body.error.type).toBe("typed_output");
});

test("hooks of kit.config.ts run for every agent, before the agent's own", async () => {
  const adds = (word: string): string =>
    `{ afterModel: ({ content }) => ({ content: [{ type: "text", text: content[0].text + "${word}" }] }) }`;
  const agent = `export const triggers = { webhook: true };
export default { kind: "kit.agent", describe: async () => ({ hooks: ${adds(" agent")} }) };
`;
  const config = `export default { agent: { hooks: ${adds(" project")} } };\n`;
  const other = await serveService({ files: { "kit.config.ts": config, "src/agents/hooked.ts": agent } });
  onTestFinished(() => other.close());
  const said = async (name: string): Promise<string> =>
    (await other.send(`/agents/${name}/a`, { body: { message: "Go" } })).body.result.text;
  expect([await said("hooked"), await said("echo")]).toEqual(["Go project agent", "Go project"]);
});
