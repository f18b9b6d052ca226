import { attempt } from "../base/attempt.ts";
import { KitError } from "../base/kit-error.ts";
import { quoteName } from "../base/names.ts";

/** A sender's signature scheme and secret. */
export type WebhookScheme = (typeof webhookSchemes)[number];
export const webhookSchemes = ["standard", "github", "slack", "stripe"] as const;

export interface WebhookSecret {
  readonly scheme: WebhookScheme;
  /** Several during a rotation. For Standard Webhooks: Base64, mostly after `whsec_`. */
  readonly secret: string | readonly string[];
}

/** A delivery with its raw, unchanged body. */
export interface Delivery {
  readonly headers: Headers;
  readonly body: Uint8Array<ArrayBuffer>;
}

export interface SchemeRules {
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly toleranceSeconds: number;
}

/** Maximum of signatures; a sender that rotates its keys sends fewer. */
const maxSignatures = 8;

/** Checks a delivery; returns its id. Throws `invalid_signature` or `stale_timestamp`. */
export function checkDelivery(
  delivery: Delivery,
  { scheme, secret }: WebhookSecret,
  rules: SchemeRules,
): Promise<{ readonly delivery_id: string }> {
  const secrets = typeof secret === "string" ? [secret] : secret;
  if (secrets.length === 0 || secrets.some((each) => each === "")) {
    throw new TypeError(
      `The secret of a ${scheme} webhook is empty. Set it; kit accepts no delivery without it.`,
    );
  }
  const check = Object.hasOwn(schemes, scheme) ? schemes[scheme] : undefined;
  if (check === undefined)
    throw new TypeError(
      `There is no webhook scheme ${quoteName(String(scheme))}. The schemes are: ${webhookSchemes.join(", ")}.`,
    );
  return check(delivery, secrets, rules);
}

type Check = (
  delivery: Delivery,
  secrets: readonly string[],
  rules: SchemeRules,
) => Promise<{ readonly delivery_id: string }>;

const schemes: Readonly<Record<WebhookScheme, Check>> = {
  /** @see https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md */
  async standard({ headers, body }, secrets, rules) {
    // Svix, which many senders use, names its headers after itself.
    const prefix = headers.has("webhook-id") ? "webhook" : "svix";
    const id = headers.get(`${prefix}-id`) ?? "";
    const timestamp = headers.get(`${prefix}-timestamp`) ?? "";
    const signatures = (headers.get(`${prefix}-signature`) ?? "")
      .split(" ", maxSignatures)
      .map((each) => (each.startsWith("v1,") ? fromBase64(each.slice(3)) : undefined));
    const keys = secrets.flatMap(standardKeys);
    const signed = joinBytes(toBytes(`${id}.${timestamp}.`), body);
    if (id === "" || !(await isSigned(signed, keys, signatures))) throw invalidSignature();
    checkTimestamp(timestamp, rules);
    return { delivery_id: id };
  },

  /** @see https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries */
  async github({ headers, body }, secrets) {
    const signature = /^sha256=([0-9a-f]{64})$/i.exec(headers.get("x-hub-signature-256") ?? "")?.[1];
    if (signature === undefined || !(await isSigned(body, secrets.map(toBytes), [fromHex(signature)])))
      throw invalidSignature();
    // The signature covers the body, but not the header with the delivery's id: a replay could change that id.
    return { delivery_id: await sha256(body) };
  },

  /** @see https://docs.slack.dev/authentication/verifying-requests-from-slack */
  async slack({ headers, body }, secrets, rules) {
    const timestamp = headers.get("x-slack-request-timestamp") ?? "";
    const signature = /^v0=([0-9a-f]{64})$/i.exec(headers.get("x-slack-signature") ?? "")?.[1];
    const signed = joinBytes(toBytes(`v0:${timestamp}:`), body);
    if (signature === undefined || !(await isSigned(signed, secrets.map(toBytes), [fromHex(signature)])))
      throw invalidSignature();
    checkTimestamp(timestamp, rules);
    // Slack repeats an event with a new timestamp and the same body.
    return { delivery_id: await sha256(body) };
  },

  /** @see https://docs.stripe.com/webhooks/signature */
  async stripe({ headers, body }, secrets, rules) {
    const fields = (headers.get("stripe-signature") ?? "")
      .split(",", maxSignatures)
      .map((field) => field.trim().split("=", 2));
    const timestamp = fields.find(([name]) => name === "t")?.[1] ?? "";
    const signatures = fields.map(([name, value = ""]) => (name === "v1" ? fromHex(value) : undefined));
    const signed = joinBytes(toBytes(`${timestamp}.`), body);
    if (!(await isSigned(signed, secrets.map(toBytes), signatures))) throw invalidSignature();
    checkTimestamp(timestamp, rules);
    // Stripe repeats an event with a new timestamp and the same body.
    return { delivery_id: await sha256(body) };
  },
};

/** The keys that a secret can mean. Without `whsec_`, it is Base64, or the characters themselves. */
function standardKeys(secret: string): readonly Uint8Array<ArrayBuffer>[] {
  const isPrefixed = secret.startsWith("whsec_");
  const key = fromBase64(isPrefixed ? secret.slice("whsec_".length) : secret);
  if (!isPrefixed) return key === undefined || key.length === 0 ? [toBytes(secret)] : [key, toBytes(secret)];
  if (key === undefined || key.length === 0)
    throw new TypeError("The secret of a Standard Webhooks sender must be `whsec_` followed by Base64.");
  return [key];
}

function checkTimestamp(text: string, { now, toleranceSeconds }: SchemeRules): void {
  const seconds = /^\d{1,12}$/.test(text) ? Number(text) : Number.NaN;
  if (Math.abs(now / 1000 - seconds) <= toleranceSeconds) return;
  throw new KitError({
    code: "stale_timestamp",
    message: "The delivery's timestamp is too far from now.",
    hint: `It can differ by at most ${toleranceSeconds} seconds. Compare the clocks; a sender signs each retry again.`,
  });
}

export function invalidSignature(): KitError {
  return new KitError({
    code: "invalid_signature",
    message: "The signature is missing or does not match.",
    hint: "Compare the secret with the sender's, and pass the unchanged body: a body that was parsed and serialized again has other bytes.",
  });
}

const encoder = new TextEncoder();

export function toBytes(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text);
}

function joinBytes(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(first.length + second.length);
  joined.set(first);
  joined.set(second, first.length);
  return joined;
}

/** Returns the bytes of a hexadecimal text; undefined for any other text. */
function fromHex(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (text.length % 2 !== 0 || !/^[0-9a-f]*$/i.test(text)) return undefined;
  const bytes = new Uint8Array(text.length / 2);
  for (let index = 0; index < bytes.length; index += 1) {
    bytes[index] = Number.parseInt(text.slice(index * 2, index * 2 + 2), 16);
  }
  return bytes;
}

/** Returns the bytes of a Base64 text, padded or not; undefined for any other text. */
function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return undefined;
  return attempt(() => Uint8Array.from(atob(text), (character) => character.charCodeAt(0)));
}

/** Returns whether one of the signatures is the HMAC-SHA-256 of a text under one of the keys. Takes constant time. */
async function isSigned(
  signed: Uint8Array<ArrayBuffer>,
  keys: readonly Uint8Array<ArrayBuffer>[],
  signatures: readonly (Uint8Array<ArrayBuffer> | undefined)[],
): Promise<boolean> {
  let matches = false;
  for (const bytes of keys) {
    const key = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, [
      "verify",
    ]);
    for (const signature of signatures) {
      // WebCrypto compares in constant time; check every signature, also after a match.
      if (signature !== undefined && (await crypto.subtle.verify("HMAC", key, signature, signed)))
        matches = true;
    }
  }
  return matches;
}

export async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return Array.from(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}
