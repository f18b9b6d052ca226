import { createHmac, randomBytes } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createMemoryDeliveries, type VerifyWebhookOptions, verifyWebhook } from "./verify-webhook.ts";
import type { WebhookScheme } from "./webhook-scheme.ts";

// In whole seconds, as senders sign it.
const now = Math.floor(Date.now() / 1000) * 1000;
const secrets = {
  standard: `whsec_${Buffer.from("a standard secret, 24 b.").toString("base64")}`,
  github: "a github secret",
  slack: "a slack signing secret",
  stripe: "whsec_a stripe secret",
} as const;
const schemes: readonly WebhookScheme[] = ["standard", "github", "slack", "stripe"];

interface Signed {
  readonly headers: Record<string, string>;
  readonly body: Uint8Array;
}

function hmac(key: string | Buffer, ...parts: readonly (string | Uint8Array)[]): Buffer {
  const hash = createHmac("sha256", key);
  for (const part of parts) hash.update(part);
  return hash.digest();
}

/** Signs as the sender's own documentation says. */
function sign(
  scheme: WebhookScheme,
  body: Uint8Array,
  options: { secret?: string; at?: number } = {},
): Signed {
  const secret = options.secret ?? secrets[scheme];
  const seconds = String(Math.floor((options.at ?? now) / 1000));
  if (scheme === "github") {
    return { body, headers: { "x-hub-signature-256": `sha256=${hmac(secret, body).toString("hex")}` } };
  }
  if (scheme === "slack") {
    const signature = hmac(secret, `v0:${seconds}:`, body).toString("hex");
    return {
      body,
      headers: { "x-slack-request-timestamp": seconds, "x-slack-signature": `v0=${signature}` },
    };
  }
  if (scheme === "stripe") {
    const signature = hmac(secret, `${seconds}.`, body).toString("hex");
    return { body, headers: { "stripe-signature": `t=${seconds},v1=${signature},v0=00` } };
  }
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  const signature = hmac(key, `msg_1.${seconds}.`, body).toString("base64");
  return {
    body,
    headers: { "webhook-id": "msg_1", "webhook-timestamp": seconds, "webhook-signature": `v1,${signature}` },
  };
}

function verify(scheme: WebhookScheme, signed: Signed, options: Partial<VerifyWebhookOptions> = {}) {
  return verifyWebhook(signed, { scheme, secret: secrets[scheme], now: () => now, ...options });
}

const code = (expected: string) => expect.objectContaining({ code: expected });

test.each(schemes)("%s: a signed delivery with any bytes is accepted", async (scheme) => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (bytes) => {
      const verified = await verify(scheme, sign(scheme, bytes));
      expect(verified.body).toEqual(new Uint8Array(bytes));
      expect(verified.duplicate).toBe(false);
    }),
  );
});

test.each(schemes)("%s: a delivery with one changed bit in its body is refused", async (scheme) => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 60 }), fc.nat(), async (bytes, at) => {
      const signed = sign(scheme, bytes);
      const body = new Uint8Array(bytes);
      const place = at % body.length;
      body[place] = (body[place] ?? 0) ^ (1 << (at % 8));
      await expect(verify(scheme, { ...signed, body })).rejects.toEqual(code("invalid_signature"));
    }),
  );
});

test.each(schemes)(
  "%s: a signature with another key, a short one and a missing one are refused",
  async (scheme) => {
    const body = Buffer.from("{}");
    const other = scheme === "standard" ? `whsec_${randomBytes(24).toString("base64")}` : "another";
    await expect(verify(scheme, sign(scheme, body, { secret: other }))).rejects.toEqual(
      code("invalid_signature"),
    );
    await expect(verify(scheme, { headers: {}, body })).rejects.toEqual(code("invalid_signature"));
    const signed = sign(scheme, body);
    for (const name of Object.keys(signed.headers)) {
      for (const value of [
        "",
        "sha256=00",
        "v0=",
        "v1,",
        "v1,!!",
        "0",
        "é".repeat(3).normalize("NFC").slice(0, 0),
      ]) {
        const headers = { ...signed.headers, [name]: value };
        await expect(verify(scheme, { headers, body }), `${name}: ${value}`).rejects.toMatchObject({
          code: "invalid_signature",
        });
      }
    }
  },
);

test.each(["standard", "slack", "stripe"] as const)(
  "%s: the sender's clock can differ by 300 seconds in both directions",
  async (scheme) => {
    const body = Buffer.from("{}");
    for (const seconds of [-300, 0, 300]) {
      await verify(scheme, sign(scheme, body, { at: now + seconds * 1000 }));
    }
    for (const seconds of [-301, 301, 1e6]) {
      await expect(verify(scheme, sign(scheme, body, { at: now + seconds * 1000 }))).rejects.toEqual(
        code("stale_timestamp"),
      );
    }
  },
);

test("a Standard Webhooks secret can lack its prefix, and Svix's names of the headers are read", async () => {
  const body = Buffer.from("{}");
  const { headers } = sign("standard", body);
  const secret = secrets.standard.slice("whsec_".length);
  expect(await verify("standard", { headers, body }, { secret })).toMatchObject({ deliveryId: "msg_1" });
  const renamed = Object.entries(headers).map(([name, value]) => [name.replace("webhook", "svix"), value]);
  const svix = Object.fromEntries(renamed);
  expect(await verify("standard", { headers: svix, body })).toMatchObject({ deliveryId: "msg_1" });
  const mixed = { ...svix, "webhook-id": "msg_2" };
  await expect(verify("standard", { headers: mixed, body })).rejects.toEqual(code("invalid_signature"));
});

test("an unknown scheme is a TypeError that names the schemes", async () => {
  const options = { scheme: "paypal" as WebhookScheme, secret: "x" };
  await expect(verifyWebhook({ headers: {}, body: "{}" }, options)).rejects.toThrow(
    new TypeError('There is no webhook scheme "paypal". The schemes are: standard, github, slack, stripe.'),
  );
});

test("a text, its bytes and a Request with it are the same delivery", async () => {
  const { headers, body } = sign("github", Buffer.from('{ "zen" : "spaced" }'));
  const options = { scheme: "github", secret: secrets.github } as const;
  const asText = await verifyWebhook({ headers, body: Buffer.from(body).toString() }, options);
  const request = new Request("http://localhost/", { method: "POST", headers, body: Buffer.from(body) });
  const asRequest = await verifyWebhook(request, options);
  expect(asText.deliveryId).toBe(asRequest.deliveryId);
  expect(asRequest.json()).toEqual({ zen: "spaced" });
  expect(asRequest.text()).toBe('{ "zen" : "spaced" }');
});

test("both secrets are valid during a rotation", async () => {
  const body = Buffer.from("{}");
  for (const secret of ["old", "new"]) {
    await verify("github", sign("github", body, { secret }), { secret: ["new", "old"] });
  }
  await expect(
    verify("github", sign("github", body, { secret: "older" }), { secret: ["new", "old"] }),
  ).rejects.toEqual(code("invalid_signature"));
});

test("one of several signatures of a Standard Webhooks sender is enough", async () => {
  const signed = sign("standard", Buffer.from("{}"));
  const headers = {
    ...signed.headers,
    "webhook-signature": `v1a,xyz v1,AAAA ${signed.headers["webhook-signature"]}`,
  };
  await verify("standard", { ...signed, headers });
});

test.each(schemes)("%s: an empty secret is refused with an error", async (scheme) => {
  const signed = sign(scheme, Buffer.from("{}"));
  await expect(verify(scheme, signed, { secret: "" })).rejects.toThrow(TypeError);
  await expect(verify(scheme, signed, { secret: [] })).rejects.toThrow(TypeError);
});

test("a repeated delivery is detected, also with another unsigned id or a later time", async () => {
  const deliveries = createMemoryDeliveries();
  const body = Buffer.from('{"event_id":"Ev1"}');
  const github = { ...sign("github", body).headers, "x-github-delivery": "1" };
  expect((await verify("github", { headers: github, body }, { deliveries })).duplicate).toBe(false);
  const again = { ...github, "x-github-delivery": "2" };
  expect((await verify("github", { headers: again, body }, { deliveries })).duplicate).toBe(true);

  const forSlack = createMemoryDeliveries();
  for (const [seconds, duplicate] of [
    [0, false],
    [60, true],
  ] as const) {
    const signed = sign("slack", body, { at: now + seconds * 1000 });
    const options = { deliveries: forSlack };
    expect((await verify("slack", signed, options)).duplicate, String(seconds)).toBe(duplicate);
  }
});

test("the number of remembered deliveries is bounded", () => {
  const deliveries = createMemoryDeliveries({ max: 100 });
  const until = Date.now() + 60_000;
  for (let id = 0; id < 1_000; id += 1) expect(deliveries.claim(String(id), until)).toBe(true);
  expect(deliveries.claim("999", until)).toBe(false);
  expect(deliveries.claim("0", until)).toBe(true);
});

test("a failed delivery is released, and senders that share deliveries do not collide", async () => {
  const deliveries = createMemoryDeliveries();
  const signed = sign("github", Buffer.from('{"event_id":"Ev2"}'));
  const inspect = async (source?: string) => await verify("github", signed, { deliveries, source });
  const first = await inspect();
  expect([first.duplicate, (await inspect()).duplicate]).toEqual([false, true]);
  expect((await inspect("another")).duplicate).toBe(false);
  await (await inspect()).release(); // Only who holds it gives it back.
  expect((await inspect()).duplicate).toBe(true);
  await first.release();
  expect((await inspect()).duplicate).toBe(false);
});

test("a repetition that is signed again hours later is the same delivery", async () => {
  const deliveries = createMemoryDeliveries();
  const body = Buffer.from('{"event_id":"Ev3"}');
  for (const [hours, duplicate] of [
    [0, false],
    [1, true],
    [20, true],
  ] as const) {
    const at = now + hours * 3_600_000;
    const signed = sign("standard", body, { at });
    const options = { deliveries, now: () => at };
    expect((await verify("standard", signed, options)).duplicate, String(hours)).toBe(duplicate);
  }
});
