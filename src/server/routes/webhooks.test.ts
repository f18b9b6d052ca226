import { createHmac } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Delivery, WebhookAccepted } from "../../protocol/dispatch.ts";
import { createTestService } from "../../testing/test-service.ts";
import { serveForTest, serveForTests } from "../testing/serve-for-tests.ts";
import { type ServedService, serveService } from "../testing/serve-service.ts";
import { webhookSecrets } from "../testing/service-files.ts";

const served = serveForTests({ access: { apiKeys: ["a-key"] } });

function deliver(body: string, options: { signedAs?: string; path?: string } = {}): Promise<Response> {
  const signature = createHmac("sha256", webhookSecrets.github)
    .update(options.signedAs ?? body)
    .digest("hex");
  return fetch(`${served.url}${options.path ?? "/webhooks/github"}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-hub-signature-256": `sha256=${signature}` },
    body,
  });
}

async function dispatches(): Promise<readonly { readonly dispatch_id: string; readonly input: unknown }[]> {
  const { items } = await served.service.engine.listDispatches({ agent: "hidden" });
  return items;
}

describe("a webhook", () => {
  test("needs no key, dispatches to an agent that HTTP does not reach, and is dispatched once", async () => {
    const first = await deliver('{ "zen" : "spaced" }');
    expect(first.status).toBe(202);
    const reply = (await first.json()) as WebhookAccepted;
    expect(reply).toEqual({
      status: "accepted",
      dispatches: [{ dispatch_id: expect.any(String), accepted_at: expect.any(String) }],
    });
    const again = await deliver('{ "zen" : "spaced" }');
    expect([again.status, await again.json()]).toEqual([202, reply]);
    const [dispatch, ...others] = await dispatches();
    expect(others).toEqual([]);
    expect(dispatch?.dispatch_id).toBe(reply.dispatches[0]?.dispatch_id);
    const ended = await served.service.engine.awaitDispatch(dispatch?.dispatch_id ?? "");
    expect(ended?.status).toBe("completed");
  });

  test("with an invalid signature is refused before anything happens", async () => {
    const before = await dispatches();
    const reply = await deliver('{"zen":"other"}', { signedAs: '{ "zen": "other" }' });
    expect(reply.status).toBe(401);
    expect(await reply.json()).toMatchObject({ error: { type: "invalid_signature" } });
    expect(await dispatches()).toEqual(before);
  });

  test("with an unknown or invalid name is refused, and no other route works without a key", async () => {
    const status = async (path: string): Promise<number> => (await deliver("{}", { path })).status;
    expect(await status("/webhooks/none")).toBe(401);
    expect(await status("/webhooks/__proto__")).toBe(401);
    expect(await status("/webhooks/..%2f..%2fetc")).toBe(400);
    for (const path of [
      "/webhooks",
      "/webhooks/",
      "/webhooks/github/x",
      "/agents/echo/a",
      "//webhooks/github",
    ])
      expect(await status(path), path).toBe(401);
    expect((await fetch(`${served.url}/webhooks/github`)).status).toBe(401);
  });

  test("without a valid signature gets the same answer, whether it exists or has a secret or not", async () => {
    const answers: unknown[] = [];
    for (const name of ["none", "github", "standard", "unset"])
      for (const body of ["{}", "not json", ""]) {
        const reply = await fetch(`${served.url}/webhooks/${name}`, {
          method: "POST",
          headers: { "content-type": "application/json", "x-hub-signature-256": `sha256=${"0".repeat(64)}` },
          body,
        });
        answers.push([reply.status, await reply.json(), [...reply.headers.keys()]]);
      }
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
  });

  test("whose file throws is an internal error without details", async () => {
    const reply = await deliver('{"fail":true}');
    expect(reply.status).toBe(500);
    expect(await reply.text()).not.toContain("secret of the webhook");
    expect(String(served.errors.at(-1))).toContain("secret of the webhook");
  });

  test("is handled once for each delivery, even if it is sent again, in parallel, with a new signature, or under another name", async () => {
    const send = async (path: string, options: { body?: string; id?: string; at?: number } = {}) => {
      const { body = '{"count":1}', id = "msg_once", at = 0 } = options;
      const seconds = String(Math.floor(Date.now() / 1000) + at);
      const key = Buffer.from(webhookSecrets.standard.slice("whsec_".length), "base64");
      const signature = createHmac("sha256", key).update(`${id}.${seconds}.${body}`).digest("base64");
      const headers = {
        "content-type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": seconds,
        "webhook-signature": `v1,${signature}`,
      };
      const reply = await fetch(`${served.url}${path}`, { method: "POST", headers, body });
      return [reply.status, await reply.json()];
    };
    const at = "/webhooks/standard";
    const [first, ...others] = await Promise.all([send(at), send(at), send(at)]);
    expect(others).toEqual([first, first]);
    expect([await send(at), await send(at, { at: 60 }), await send(at, { body: '{"count":2}' })]).toEqual([
      first,
      first,
      first,
    ]);
    expect(await send(at, { id: "msg_other" })).not.toEqual(first);
    // The same body of another sender is another delivery.
    const github = await deliver('{"count":1}');
    expect(await github.json()).not.toEqual(first?.[1]);
    expect(await (await deliver('{"count":1}')).json()).not.toEqual(first?.[1]);
  });

  test("whose file failed is handled when its delivery is repeated", async () => {
    const before = served.errors.length;
    for (const _ of [1, 2]) expect((await deliver('{"fail":true,"n":2}')).status).toBe(500);
    expect(served.errors.length - before).toBe(2);
  });
});

test("deliveries are listed newest first, including refused ones, to callers who may see their webhook", async () => {
  const service = await serveForTest({
    access: { apiKeys: ["a-key"] },
    authorize: ({ action, webhook }) => action === "webhook.list" && webhook === "github",
  });
  const send = (path: string, signed: boolean): Promise<Response> => {
    const body = '{"n":1}';
    const digest = createHmac("sha256", webhookSecrets.github).update(body).digest("hex");
    const signature = signed ? `sha256=${digest}` : "sha256=00";
    return fetch(`${service.url}/webhooks/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-hub-signature-256": signature },
      body,
    });
  };
  const list = (query = "") =>
    service.send(`/deliveries${query}`, { headers: { authorization: "Bearer a-key" } });
  expect((await service.send("/deliveries")).status).toBe(401);
  const accepted = (await (await send("github", true)).json()) as WebhookAccepted;
  await send("github", false);
  await send("slack", false);
  await send("none", false);
  const { deliveries } = (await list()).body;
  expect(deliveries).toEqual([
    {
      record_id: expect.stringMatching(/^delivery_/),
      webhook: "github",
      received_at: expect.any(String),
      outcome: "refused",
      status: 401,
      duration_ms: expect.any(Number),
      bytes: 7,
      dispatches: [],
      runs: [],
      error: { type: "invalid_signature", message: expect.any(String) },
    },
    expect.objectContaining({ status: 202, dispatches: [accepted.dispatches[0]?.dispatch_id] }),
  ]);
  const first = (await list("?webhook=github&limit=1")).body;
  const second = (await list(`?webhook=github&limit=1&cursor=${first.next_cursor}`)).body;
  expect([first.deliveries[0].status, second.deliveries[0].status, second.next_cursor]).toEqual([
    401,
    202,
    undefined,
  ]);
  expect((await list("?outcome=refused")).body.deliveries).toHaveLength(1);
  expect((await list("?outcome=failed")).body.deliveries).toEqual([]);
  for (const query of ["?outcome=lost", "?limit=0", "?cursor=none", "?name=github"])
    expect([query, (await list(query)).status]).toEqual([query, 400]);
});

describe("records of deliveries", () => {
  /** A delivery of Standard Webhooks with an id of the test's own. */
  function standard(id: string, body: string): RequestInit {
    const seconds = String(Math.floor(Date.now() / 1000));
    const key = Buffer.from(webhookSecrets.standard.slice("whsec_".length), "base64");
    const signature = createHmac("sha256", key).update(`${id}.${seconds}.${body}`).digest("base64");
    const headers = {
      "content-type": "application/json",
      "webhook-id": id,
      "webhook-timestamp": seconds,
      "webhook-signature": `v1,${signature}`,
    };
    return { method: "POST", headers, body };
  }
  const list = async (service: Pick<ServedService, "send">, query = "") =>
    (await service.send(`/deliveries${query}`, { headers: { authorization: "Bearer a-key" } })).body;

  test("remain after a restart, including refused ones, with the work that they started", async () => {
    const engineFolder = await mkdtemp(join(tmpdir(), "kit-deliveries-"));
    const open = () =>
      serveService({
        access: { apiKeys: ["a-key"] },
        openService: (from) => createTestService({ ...from, engineFolder }),
      });
    let service = await open();
    try {
      const reply = await fetch(`${service.url}/webhooks/standard`, standard("msg_night", "{}"));
      const accepted = (await reply.json()) as WebhookAccepted;
      const dispatch_id = accepted.dispatches[0]?.dispatch_id;
      expect((await fetch(`${service.url}/webhooks/github`, { method: "POST", body: "{}" })).status).toBe(
        401,
      );
      expect(
        (await fetch(`${service.url}/webhooks/standard`, standard("msg_fails", '{"fail":true}'))).status,
      ).toBe(500);
      const before = await list(service);
      await service.close();
      service = await open();
      const after = await list(service);
      expect(after).toEqual(before);
      expect(after.deliveries).toMatchObject([
        { outcome: "failed", status: 500, delivery_id: "msg_fails", error: { type: "internal_error" } },
        { outcome: "refused", status: 401, webhook: "github" },
        { outcome: "accepted", status: 202, delivery_id: "msg_night", dispatches: [dispatch_id] },
      ]);
      expect(JSON.stringify(after)).not.toMatch(/secret|v1,|whsec/);
      // Its repetition is a record of its own.
      await fetch(`${service.url}/webhooks/standard`, standard("msg_night", "{}"));
      const again = await list(service, "?delivery_id=msg_night");
      expect(again.deliveries.map((one: Delivery) => one.dispatches)).toEqual([[dispatch_id], [dispatch_id]]);
    } finally {
      await service.close();
      await rm(engineFolder, { recursive: true });
    }
  });

  test("name the invalid field of a payload, and the part of a reply that is not JSON", async () => {
    const service = await serveService({
      files: {
        "src/webhooks/strict.ts": `export default {
  kind: "kit.webhook",
  scheme: "standard",
  secret: () => "${webhookSecrets.standard}",
  payload: { type: "object", properties: { order: { type: "string" } } },
  handle: () => ({ orders: [{ cents: 1n }] }),
};
`,
      },
    });
    try {
      const send = async (id: string, body: string) =>
        (await fetch(`${service.url}/webhooks/strict`, standard(id, body))).json();
      expect(await send("msg_wrong", '{"order": 5}')).toMatchObject({
        error: { type: "invalid_request", meta: { issues: [{ path: "body.payload.order" }] } },
      });
      expect(await send("msg_right", '{"order": "a"}')).toMatchObject({
        error: {
          type: "internal_error",
          message: 'The reply of the webhook "strict" is not JSON: orders[0].cents is a bigint.',
        },
      });
    } finally {
      await service.close();
    }
  });

  test("stay open while the file works, once it has started work", async () => {
    const service = await serveService({
      files: {
        "src/webhooks/held.ts": `export default {
  kind: "kit.webhook",
  scheme: "standard",
  secret: () => "${webhookSecrets.standard}",
  handle: async ({ payload, dispatch }) => {
    await dispatch("hidden", { id: "thread", input: payload });
    await new Promise((resolve) => (globalThis.endHeldDelivery = resolve));
  },
};
`,
      },
      access: { apiKeys: ["a-key"] },
    });
    try {
      const reply = fetch(`${service.url}/webhooks/held`, standard("msg_held", "{}"));
      await expect.poll(() => Reflect.has(globalThis, "endHeldDelivery")).toBe(true);
      const [open] = (await list(service, "?outcome=open")).deliveries;
      expect(open).toMatchObject({ webhook: "held", delivery_id: "msg_held", bytes: 2 });
      expect([open.status, open.duration_ms]).toEqual([undefined, undefined]);
      Reflect.get(globalThis, "endHeldDelivery")();
      expect((await reply).status).toBe(202);
      expect((await list(service)).deliveries).toMatchObject([
        { record_id: open.record_id, outcome: "accepted" },
      ]);
    } finally {
      Reflect.deleteProperty(globalThis, "endHeldDelivery");
      await service.close();
    }
  });

  test("contain a bounded part of what hostile senders write, and never their headers and bodies", async () => {
    const id = `\u00ff' OR 1=1; <img src=x> ${"x".repeat(8_000)}`;
    const reply = await fetch(`${served.url}/webhooks/standard`, standard(id, '{"stolen":"body text"}'));
    expect(reply.status).toBe(202);
    const [record] = (await list(served, "?webhook=standard")).deliveries;
    expect(record.delivery_id).toBe(id.slice(0, 200));
    const query = new URLSearchParams({ delivery_id: record.delivery_id });
    expect((await list(served, `?${query}`)).deliveries).toEqual([record]);
    expect(JSON.stringify(record).length).toBeLessThan(1_000);
    expect(JSON.stringify(record)).not.toContain("body text");
    const huge = { method: "POST", headers: { "webhook-id": "x".repeat(15_000) }, body: "\0\ud800" };
    expect((await fetch(`${served.url}/webhooks/standard`, huge)).status).toBe(401);
    expect((await list(served, "?webhook=standard")).deliveries[0]).toMatchObject({ status: 401, bytes: 4 });
  });
});
