import { createHmac } from "node:crypto";
import { type } from "arktype";
import * as v from "valibot";
import { expect, test, vi } from "vitest";
import { z } from "zod";
import { createJsonValidator } from "../app/runtime/validate-json.ts";
import { defineWebhook, type WebhookDefinition } from "./define-webhook.ts";
import { type IncomingWebhook, receiveWebhook } from "./receive-webhook.ts";

const env = { CHAT_SECRET: "chat secret" };

type Dispatch = ReturnType<IncomingWebhook["callsOf"]>["dispatch"];

function incoming(
  body: string,
  { dispatch, ...options }: Partial<IncomingWebhook> & { type?: string; dispatch?: Dispatch } = {},
): IncomingWebhook {
  const seconds = String(Math.floor(Date.now() / 1000));
  const signature = createHmac("sha256", env.CHAT_SECRET).update(`v0:${seconds}:${body}`).digest("hex");
  return {
    name: "chat",
    headers: new Headers({
      "content-type": options.type ?? "application/json",
      "x-slack-request-timestamp": seconds,
      "x-slack-signature": `v0=${signature}`,
    }),
    body: new TextEncoder().encode(body),
    env,
    signal: new AbortController().signal,
    validateJson: createJsonValidator(),
    callsOf: () => ({
      dispatch: dispatch ?? (async () => ({ dispatch_id: "dis_1", accepted_at: "2026-11-21T00:00:00.000Z" })),
      startRun: () => Promise.reject(new Error("none")),
      getRun: () => {
        throw new Error("none");
      },
    }),
    once: (_key, work) => work(),
    ...options,
  };
}

function chat(handle: WebhookDefinition["handle"]): WebhookDefinition {
  return defineWebhook({ scheme: "slack", secret: (given) => given.CHAT_SECRET, handle });
}

test("a signed delivery is dispatched, and its repetition uses the same keys", async () => {
  const keys: string[] = [];
  const dispatch: Dispatch = async (agent, input) => {
    expect([agent, input.id, input.input]).toEqual(["support", "T1", "hello"]);
    keys.push(input.idempotencyKey ?? "");
    return { dispatch_id: `dis_${keys.length}`, accepted_at: "2026-11-21T00:00:00.000Z" };
  };
  const webhook = chat(async ({ payload, dispatch: send }) => {
    const { thread, text } = payload as { thread: string; text: string };
    await send("support", { id: thread, input: text });
    await send("support", { id: thread, input: text });
  });
  const body = JSON.stringify({ thread: "T1", text: "hello" });
  const reply = await receiveWebhook(webhook, incoming(body, { dispatch }));
  expect(reply).toMatchObject({
    status: 202,
    body: { status: "accepted", dispatches: [{ dispatch_id: "dis_1" }, { dispatch_id: "dis_2" }] },
  });
  await receiveWebhook(webhook, incoming(body, { dispatch }));
  expect(keys.slice(2)).toEqual(keys.slice(0, 2));
  expect(new Set(keys).size).toBe(2);
  // Two webhooks may be sent the same body, and have names that begin alike.
  for (const end of ["a", "b"]) {
    await receiveWebhook(webhook, incoming(body, { dispatch, name: "chat".repeat(20) + end }));
  }
  expect(new Set(keys).size).toBe(6);
  expect(keys.every((key) => /^[!-~]{1,128}$/.test(key))).toBe(true);
});

test("an unsigned delivery never reaches the handler", async () => {
  const handle = vi.fn();
  const forged = incoming("{}");
  forged.headers.set("x-slack-signature", `v0=${"0".repeat(64)}`);
  await expect(receiveWebhook(chat(handle), forged)).rejects.toMatchObject({ code: "invalid_signature" });
  expect(handle).not.toHaveBeenCalled();
});

test("a webhook without its secret refuses every delivery, with a hint at the missing secret", async () => {
  for (const secret of [undefined, "", [], ["good", ""]]) {
    const webhook = defineWebhook({ scheme: "slack", secret: () => secret, handle: () => "never" });
    await expect(receiveWebhook(webhook, incoming("{}"))).rejects.toMatchObject({
      code: "unavailable",
      hint: expect.stringContaining('"chat"'),
    });
  }
});

test("Slack's signed request to verify the address is answered", async () => {
  const body = JSON.stringify({ type: "url_verification", challenge: "abc" });
  const reply = await receiveWebhook(
    chat(() => "never"),
    incoming(body),
  );
  expect(reply).toEqual({ status: 200, body: { challenge: "abc" } });
});

test("a form is parsed into its fields, or into the JSON in its payload", async () => {
  const type = "application/x-www-form-urlencoded";
  const echo = chat(({ payload }) => payload);
  const command = await receiveWebhook(echo, incoming("command=%2Fkit&text=hi+there", { type }));
  expect(command.body).toEqual({ command: "/kit", text: "hi there" });
  const action = await receiveWebhook(echo, incoming(`payload=${encodeURIComponent('{"a":1}')}`, { type }));
  expect(action.body).toEqual({ a: 1 });
});

test("a signed body that is not JSON is refused with invalid_json", async () => {
  await expect(
    receiveWebhook(
      chat(() => "never"),
      incoming("{"),
    ),
  ).rejects.toMatchObject({
    code: "invalid_json",
  });
});

test.each([
  ["id", { id: "acme/shop#12" }],
  ["id", { id: "" }],
  ["id", { id: "x".repeat(129) }],
  ["id", { id: undefined as unknown as string }],
  ["session", { id: "T1", session: ".." }],
])("an invalid %s is refused before anything is dispatched: %o", async (path, names) => {
  const dispatch = vi.fn();
  const webhook = chat(({ dispatch: send }) => send("support", { input: "hello", ...names }));
  await expect(receiveWebhook(webhook, incoming("{}", { dispatch }))).rejects.toMatchObject({
    code: "invalid_request",
    meta: { issues: [{ path, message: expect.any(String) }] },
  });
  expect(dispatch).not.toHaveBeenCalled();
});

test.each<[string, WebhookDefinition["payload"]]>([
  ["zod", z.object({ item: z.object({ count: z.number() }) })],
  ["valibot", v.object({ item: v.object({ count: v.number() }) })],
  ["arktype", type({ item: { count: "number" } })],
  [
    "JSON Schema",
    {
      type: "object",
      required: ["item"],
      properties: { item: { type: "object", properties: { count: { type: "number" } } } },
    },
  ],
])("a payload that the schema (%s) refuses never comes to the file", async (_library, payload) => {
  const handle = vi.fn(({ payload: given }: { payload: unknown }) => given);
  const webhook = defineWebhook({ scheme: "slack", secret: (given) => given.CHAT_SECRET, payload, handle });
  const wrong = incoming(JSON.stringify({ item: { count: "two" } }));
  await expect(receiveWebhook(webhook, wrong)).rejects.toMatchObject({
    code: "invalid_request",
    message: 'The payload is not what the webhook "chat" accepts.',
    meta: { issues: [{ path: "payload.item.count", message: expect.any(String) }] },
  });
  expect(handle).not.toHaveBeenCalled();
  const fitting = { item: { count: 2 } };
  expect(await receiveWebhook(webhook, incoming(JSON.stringify(fitting)))).toEqual({
    status: 200,
    body: fitting,
  });
});

test("the handler gets the schema's output as its payload, and an invalid schema is refused", async () => {
  const webhook = defineWebhook({
    scheme: "slack",
    secret: (given) => given.CHAT_SECRET,
    payload: z.object({ at: z.string().transform((text) => new Date(text)) }),
    handle: ({ payload }) => ({ year: payload.at.getUTCFullYear() }),
  });
  const reply = await receiveWebhook(webhook, incoming('{"at": "2026-05-05"}'));
  expect(reply).toEqual({ status: 200, body: { year: 2026 } });
  expect(() => defineWebhook({ ...webhook, payload: "text" as never })).toThrow("`payload` must be a schema");
  expect(() => defineWebhook({ ...webhook, payload: { type: "objekt" } })).toThrow(
    "`payload` is not a valid JSON Schema: `type` must be one of",
  );
});
