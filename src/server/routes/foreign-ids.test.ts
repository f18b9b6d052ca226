import { afterAll, beforeAll, expect, test } from "vitest";
import { agUiRoutes } from "../../protocol/routes/ag-ui-routes.ts";
import { openAiRoutes } from "../../protocol/routes/openai-routes.ts";
import { uiRoutes } from "../../protocol/routes/ui-routes.ts";
import { serveForTests } from "../testing/serve-for-tests.ts";

const routes = { ...uiRoutes, ...openAiRoutes, ...agUiRoutes };
type Key = keyof typeof routes;

/** The ids of a sender's work. */
interface Ids {
  readonly instance: string;
  readonly operation: string;
  readonly response: string;
  readonly call: string;
}

type Foreign = readonly [path: string, body: object | undefined, status: number];

let anns: Ids;

const keyOf = (sender: string) => ({ authorization: `Bearer ${sender}` });
const send = (sender: string, path: string, body?: object): Promise<Response> =>
  served.stream(path, { headers: keyOf(sender), ...(body && { body }) });
const user = (text: string) => ({ role: "user", content: text });
const weather = { name: "weather", parameters: { type: "object" } };

const served = serveForTests({
  access: {
    auth: ({ headers }) => ({ id: /Bearer (\S+)/.exec(headers.get("authorization") ?? "")?.[1] ?? "" }),
  },
  authorize: ({ principal, instance }) => instance === undefined || principal?.id === instance,
});
beforeAll(async () => {
  const message = { id: "m1", role: "user", parts: [{ type: "text", text: "hello" }] };
  const page = await (await send("ann", "/agents/echo/ann/ui", { id: "chat", messages: [message] })).text();
  const asked = { model: "echo", input: "weather", tools: [{ type: "function", ...weather }] };
  const { body } = await served.send("/v1/responses", { body: asked, headers: keyOf("ann") });
  anns = {
    instance: "ann",
    operation: /"messageId":"(op_[^"]+)"/.exec(page)?.[1] ?? "",
    response: body.id,
    call: body.output[0].call_id,
  };
});
afterAll(() => expect(served.errors).toEqual([]));

/** Requests with ids of another sender, for each route. An id in a body of `/v1` that a route refuses names a field: 400. */
const requests: Readonly<Record<Key, (ids: Ids) => readonly Foreign[]>> = {
  "POST /agents/{name}/{id}/ui": ({ instance, operation }) => {
    const decision = { type: "tool-pay", state: "approval-responded", approval: { id: "x", approved: true } };
    const answer = { id: operation, role: "assistant", parts: [decision], metadata: { kit_index: 1 } };
    const message = { id: "m2", role: "user", parts: [{ type: "text", text: "hello" }] };
    return [
      [`/agents/echo/${instance}/ui`, { id: "chat", messages: [message] }, 404],
      [`/agents/echo/${instance}/ui`, { id: "chat", messages: [answer] }, 404],
      ["/agents/echo/eve/ui", { id: "chat", messages: [answer] }, 404],
    ];
  },
  "GET /agents/{name}/{id}/ui/{session}/stream": ({ instance, operation }) => [
    [`/agents/echo/${instance}/ui/chat/stream`, undefined, 404],
    [`/agents/echo/${instance}/ui/chat/stream?operation_id=${operation}`, undefined, 404],
    [`/agents/echo/eve/ui/chat/stream?operation_id=${operation}`, undefined, 404],
  ],
  "GET /agents/{name}/{id}/ui/{session}/messages": ({ instance }) => [
    [`/agents/echo/${instance}/ui/chat/messages`, undefined, 404],
  ],
  "POST /agents/{name}/{id}/ui/{session}/stop": ({ instance, operation }) => [
    [`/agents/echo/${instance}/ui/chat/stop`, { operation_id: operation }, 404],
  ],
  "GET /v1/models": () => [],
  "POST /v1/chat/completions": ({ call }) => [
    [
      "/v1/chat/completions",
      { model: "echo", messages: [user("x"), { role: "tool", tool_call_id: call, content: "1" }] },
      400,
    ],
  ],
  "POST /v1/responses": ({ response, call }) => [
    ["/v1/responses", { model: "echo", input: "x", previous_response_id: response }, 404],
    [
      "/v1/responses",
      {
        model: "echo",
        input: [{ type: "item_reference", id: `${response.replace("resp", "msg")}-1` }, user("x")],
      },
      404,
    ],
    [
      "/v1/responses",
      { model: "echo", input: [{ type: "function_call_output", call_id: call, output: "1" }] },
      400,
    ],
  ],
  "GET /v1/responses/{response_id}": ({ response }) => [
    [`/v1/responses/${response}`, undefined, 404],
    [`/v1/responses/${response}?stream=true`, undefined, 404],
  ],
  "POST /v1/responses/{response_id}/cancel": ({ response }) => [
    [`/v1/responses/${response}/cancel`, {}, 404],
  ],
  "POST /agents/{name}/{id}/agui": ({ instance }) => [
    [`/agents/echo/${instance}/agui`, { threadId: "chat", runId: "r", messages: [user("x")] }, 404],
  ],
  "POST /agents/{name}/{id}/agui/connect": ({ instance }) => [
    [`/agents/echo/${instance}/agui/connect`, { threadId: "chat", runId: "r", messages: [] }, 404],
  ],
};

test.each(Object.keys(routes) as Key[])("%s tells nothing about the work of another sender", async (key) => {
  const ulid = "01HZZZZZZZZZZZZZZZZZZZZZZZ";
  const unknown = requests[key]({
    instance: "none",
    operation: `op_${ulid}`,
    response: `resp_${ulid}`,
    call: `call_${ulid}-call_1`,
  });
  for (const [at, [path, body, status]] of requests[key](anns).entries()) {
    const reply = await send("eve", path, body);
    expect([path, reply.status]).toEqual([path, status]);
    const [unknownPath = "", unknownBody] = unknown[at] ?? [];
    // An id that is no one's has the same answer.
    const text = await (await send("eve", unknownPath, unknownBody)).text();
    expect(text.replace("none", "ann")).toBe(await reply.text());
  }
});

test("the ids of a sender's own work are found, and another's result has decided nothing", async () => {
  const { response, operation, call } = anns;
  expect((await send("ann", `/v1/responses/${response}`)).status).toBe(200);
  expect((await send("ann", `/agents/echo/ann/ui/chat/stream?operation_id=${operation}`)).status).toBe(200);
  const input = [{ type: "function_call_output", call_id: call, output: "64 degrees" }];
  const { body } = await served.send("/v1/responses", {
    body: { model: "echo", input },
    headers: keyOf("ann"),
  });
  expect(body.output[0].content[0].text).toBe("It said 64 degrees.");
});
