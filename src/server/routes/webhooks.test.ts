import { createHmac } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { WebhookAccepted } from "../../protocol/dispatch.ts";
import { type ServedService, serveService } from "../testing/serve-service.ts";
import { webhookSecrets } from "../testing/service-files.ts";

let served: ServedService;
beforeAll(async () => {
  served = await serveService({ access: { apiKeys: ["a-key"] } });
});
afterAll(() => served.close());

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

  test("that is not signed as it came is refused before anything happens", async () => {
    const before = await dispatches();
    const reply = await deliver('{"zen":"other"}', { signedAs: '{ "zen": "other" }' });
    expect(reply.status).toBe(401);
    expect(await reply.json()).toMatchObject({ error: { type: "invalid_signature" } });
    expect(await dispatches()).toEqual(before);
  });

  test("of an unknown or impossible name is refused, and no other route opens without a key", async () => {
    const status = async (path: string): Promise<number> => (await deliver("{}", { path })).status;
    expect(await status("/webhooks/none")).toBe(404);
    expect(await status("/webhooks/__proto__")).toBe(404);
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

  test("whose file fails is an internal error that says nothing of it", async () => {
    const reply = await deliver('{"fail":true}');
    expect(reply.status).toBe(500);
    expect(await reply.text()).not.toContain("secret of the webhook");
    expect(String(served.errors.at(-1))).toContain("secret of the webhook");
  });

  test("is handled once for each delivery: again, at once, signed anew, and under another name", async () => {
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

  test("whose file failed is handed over again", async () => {
    const before = served.errors.length;
    for (const _ of [1, 2]) expect((await deliver('{"fail":true,"n":2}')).status).toBe(500);
    expect(served.errors.length - before).toBe(2);
  });
});

test("deliveries are listed newest first, refused ones too, to who may see those of their webhook", async () => {
  const own = await serveService({
    access: { apiKeys: ["a-key"] },
    authorize: ({ action, webhook }) => action === "webhook.list" && webhook === "github",
  });
  const send = (path: string, signed: boolean): Promise<Response> => {
    const body = '{"n":1}';
    const digest = createHmac("sha256", webhookSecrets.github).update(body).digest("hex");
    const signature = signed ? `sha256=${digest}` : "sha256=00";
    return fetch(`${own.url}/webhooks/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-hub-signature-256": signature },
      body,
    });
  };
  const list = (query = "") =>
    own.send(`/deliveries${query}`, { headers: { authorization: "Bearer a-key" } });
  try {
    expect((await own.send("/deliveries")).status).toBe(401);
    const accepted = (await (await send("github", true)).json()) as WebhookAccepted;
    await send("github", false);
    await send("slack", false);
    await send("none", false);
    const { deliveries } = (await list()).body;
    expect(deliveries).toEqual([
      {
        webhook: "github",
        received_at: expect.any(String),
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
    for (const query of ["?limit=0", "?cursor=none", "?name=github"])
      expect([query, (await list(query)).status]).toEqual([query, 400]);
  } finally {
    await own.close();
  }
});
