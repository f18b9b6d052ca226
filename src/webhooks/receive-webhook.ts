import { toJsonText } from "../base/json-text.ts";
import { KitError } from "../base/kit-error.ts";
import { faultOfName } from "../base/names.ts";
import { type checkAgainst, checkPayload } from "../base/standard-schema.ts";
import { thrownText } from "../base/thrown.ts";
import type { DispatchReceipt } from "../protocol/dispatch.ts";
import type { ApplicationCalls, StartRun, StartRunOptions } from "../protocol/run-calls.ts";
import { findSecret, type WebhookDefinition, type WebhookDispatch } from "./define-webhook.ts";
import { type VerifiedWebhook, verifyWebhook } from "./verify-webhook.ts";
import { sha256, toBytes } from "./webhook-scheme.ts";

/** A delivery, and the parts of the application that handle it. */
export interface IncomingWebhook {
  /** The name of the webhook's file, which is a part of the idempotency keys. */
  readonly name: string;
  readonly headers: Headers;
  /** The raw, unchanged body. */
  readonly body: Uint8Array;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The calls of a verified delivery. */
  readonly callsOf: (deliveryId: string) => ApplicationCalls;
  /** Fires when the sender disconnects. */
  readonly signal: AbortSignal;
  /** Checks a payload with a JSON Schema. */
  readonly validateJson: Parameters<typeof checkAgainst>[2];
  /** Runs the work for a key once, and returns its outcome (JSON) to later callers, also after restarts. */
  readonly once: (key: string, work: () => Promise<WebhookReply>) => Promise<unknown>;
}

export interface WebhookReply {
  readonly status: number;
  readonly body: unknown;
}

/**
 * Verifies a delivery and passes it to its file. Returns the status and the body of the reply.
 *
 * A repeated delivery, whatever its time and body, gets the reply of the first and is not handled
 * again; a concurrent one waits for that reply. An error of the file is not remembered: the sender
 * retries, and the dispatches then have the same keys.
 *
 * Throws `invalid_signature`, `stale_timestamp`, `invalid_json` for a signed body that is none,
 * `invalid_request` for a payload that the file's schema refuses and for a dispatch to what cannot be an instance or a session, and `unavailable` while
 * there is no secret.
 */
export async function receiveWebhook(
  definition: WebhookDefinition,
  incoming: IncomingWebhook,
): Promise<WebhookReply> {
  const { headers, body } = incoming;
  const delivery = await verifyWebhook(
    { headers, body },
    {
      scheme: definition.scheme,
      secret: secretOf(definition, incoming),
      toleranceSeconds: definition.toleranceSeconds,
    },
  );
  const payload = readPayload(delivery);
  const challenge = definition.scheme === "slack" ? slackChallenge(payload) : undefined;
  if (challenge !== undefined) return { status: 200, body: { challenge } };
  // Hash the key: names and senders' ids can be long, and several webhooks can get the same body.
  const key = (await sha256(toBytes(`${incoming.name}/${delivery.deliveryId}`))).slice(0, 40);
  const calls = incoming.callsOf(delivery.deliveryId);
  const reply = await incoming.once(`webhook:${key}`, () =>
    handOver(definition, { incoming, calls, delivery, payload, key }),
  );
  return reply as WebhookReply;
}

interface Delivery {
  readonly incoming: IncomingWebhook;
  readonly calls: ApplicationCalls;
  readonly delivery: VerifiedWebhook;
  readonly payload: unknown;
  readonly key: string;
}

async function handOver(
  definition: WebhookDefinition,
  { incoming, calls, delivery, payload: sent, key }: Delivery,
): Promise<WebhookReply> {
  const payload = await checkPayload(definition.payload, sent, {
    receiver: `the webhook "${incoming.name}"`,
    validateJson: incoming.validateJson,
  });
  const receipts: DispatchReceipt[] = [];
  let count = 0;
  const nextKey = (): string => {
    count += 1;
    return `webhook:${incoming.name.slice(0, 40)}:${key}:${count}`;
  };
  const reply = await definition.handle({
    delivery,
    payload,
    env: incoming.env,
    async dispatch(agent, input) {
      checkNames(input);
      const receipt = await calls.dispatch(agent, { ...input, idempotencyKey: nextKey() });
      receipts.push(receipt);
      return receipt;
    },
    startRun: (async (
      workflow: string,
      payload?: Readonly<Record<string, unknown>>,
      { idempotencyKey = nextKey() }: StartRunOptions = {},
    ) => await calls.startRun(workflow, payload, { idempotencyKey })) as StartRun,
    getRun: (runId) => calls.getRun(runId),
    signal: incoming.signal,
  });
  return reply === undefined
    ? { status: 202, body: { status: "accepted", dispatches: receipts } }
    : { status: 200, body: jsonReply(reply, incoming.name) };
}

/** Returns the reply of a handler as JSON. Throws `internal_error` with the place that JSON cannot contain. */
function jsonReply(reply: unknown, name: string): unknown {
  try {
    return JSON.parse(toJsonText(reply));
  } catch (error) {
    // biome-ignore lint/style/useErrorCause: the cause is among its fields.
    throw new KitError({
      code: "internal_error",
      message: `The reply of the webhook "${name}" is not JSON: ${thrownText(error)}.`,
      hint: "Return plain objects, arrays, texts, numbers, booleans and null from `handle`.",
      cause: error,
    });
  }
}

/** Checks ids, which come from senders: no request could reach an instance whose id no path can hold. */
function checkNames({ id, session = "default" }: WebhookDispatch): void {
  for (const [path, value] of Object.entries({ id, session })) {
    const fault = typeof value === "string" ? faultOfName(value) : "must be a string";
    if (fault === undefined) continue;
    throw new KitError({
      code: "invalid_request",
      message: "The delivery names no valid session.",
      meta: { issues: [{ path, message: fault }] },
      hint: `In the webhook's file, build the ${path} as one path segment: join its parts by "-" or ":".`,
    });
  }
}

function secretOf(definition: WebhookDefinition, { env, name }: IncomingWebhook): string | readonly string[] {
  const secret = findSecret(definition, env);
  if (secret !== undefined) return secret;
  throw new KitError({
    code: "unavailable",
    message: "This webhook is not set up.",
    hint: `The webhook "${name}" has no secret: set the environment variable that its file reads.`,
  });
}

function readPayload(delivery: VerifiedWebhook): unknown {
  try {
    return payloadOf(delivery);
  } catch (cause) {
    throw invalidJson(cause);
  }
}

/** Parses a body: JSON, or a form with JSON in its field `payload`, as Slack's commands and GitHub's older hooks send it. */
function payloadOf({ headers, text, json }: VerifiedWebhook): unknown {
  if (!(headers.get("content-type") ?? "").startsWith("application/x-www-form-urlencoded")) return json();
  const fields = new URLSearchParams(text());
  const payload = fields.get("payload");
  return payload === null ? Object.fromEntries(fields) : JSON.parse(payload);
}

function invalidJson(cause: unknown): KitError {
  return new KitError({ code: "invalid_json", message: "The body is not valid JSON.", cause });
}

/** Returns the challenge with which Slack verifies the address once. @see https://docs.slack.dev/reference/events/url_verification */
function slackChallenge(payload: unknown): string | undefined {
  if (typeof payload !== "object" || payload === null) return undefined;
  const { type, challenge } = payload as Readonly<Record<string, unknown>>;
  return type === "url_verification" && typeof challenge === "string" ? challenge : undefined;
}
