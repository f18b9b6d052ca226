import type { StandardSchemaV1 } from "@standard-schema/spec";
import { toSentence, unknownKey } from "../base/error-text.ts";
import { faultOfSchema } from "../json-schema/schema-fault.ts";
import type { Dispatch, DispatchInput, RunCalls, StartRun } from "../protocol/run-calls.ts";
import type { VerifiedWebhook } from "./verify-webhook.ts";
import { type WebhookScheme, webhookSchemes } from "./webhook-scheme.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** A file in `src/webhooks/` as its default export: `POST /webhooks/<name>`. */
export interface WebhookDefinition<Payload = unknown> {
  readonly kind: "kit.webhook";
  readonly scheme: WebhookScheme;
  /** Returns the secret, or several during a rotation; without one, kit refuses every delivery. */
  readonly secret: (env: Env) => string | readonly string[] | undefined;
  /** The most seconds by which the sender's clock can differ; default 300. */
  readonly toleranceSeconds?: number;
  /**
   * Checks the payload before `handle`, which gets the schema's output. The sender of an invalid payload gets 400 with an
   * issue for each fault. Default: any JSON.
   */
  readonly payload?: StandardSchemaV1<unknown, Payload> | { readonly [keyword: string]: unknown } | undefined;
  /**
   * Handles a delivery. Senders wait only a few seconds: dispatch the work, and return. The return value
   * is the body of the reply; default: the receipts of the dispatched work, with status 202.
   */
  handle(context: WebhookContext<Payload>): unknown;
}

export interface WebhookContext<Payload = unknown> {
  readonly delivery: VerifiedWebhook;
  /** The delivery's body, JSON or the fields of a form, after the schema `payload`. */
  readonly payload: Payload;
  readonly env: Env;
  /**
   * Dispatches an input to a session; resolves once it is on disk. A repeated delivery
   * has the same id, and its inputs are not dispatched twice.
   */
  dispatch(agent: Parameters<Dispatch>[0], input: WebhookDispatch): ReturnType<Dispatch>;
  /**
   * Starts a run of a workflow, once also for a repeated delivery. Await its `result` only if it is quick: with the
   * `signal`, not longer than the sender waits.
   */
  readonly startRun: StartRun;
  /** Returns a handle for a run by its id, such as a run that waits for this delivery. */
  readonly getRun: RunCalls["getRun"];
  /** Fires when the sender disconnects. If `handle` then throws, it runs again for the repeated delivery. */
  readonly signal: AbortSignal;
}

/** An input; the delivery's id is a part of its idempotency key. */
export type WebhookDispatch = Omit<DispatchInput, "idempotencyKey">;

const fields: Readonly<Record<keyof WebhookDefinition, (value: unknown) => string | undefined>> = {
  kind: () => undefined,
  scheme: (value) =>
    webhookSchemes.some((scheme) => scheme === value)
      ? undefined
      : `must be one of ${webhookSchemes.join(", ")}`,
  secret: (value) => {
    if (typeof value === "function") return undefined;
    const text = typeof value === "string" || Array.isArray(value);
    return `must be a function that finds it in the environment: secret: (env) => env.WEBHOOK_SECRET${text ? ". A secret in a file is one that others read" : ""}`;
  },
  toleranceSeconds: (value) =>
    value === undefined || typeof value === "number" ? undefined : "must be a number of seconds",
  payload: (value) => (value === undefined ? undefined : faultOfSchema(value)),
  handle: (value) => (typeof value === "function" ? undefined : "must be a function"),
};

/** Returns the error of a webhook that plain JavaScript can have defined; the text never quotes a value. */
export function faultOfWebhook(definition: object): string | undefined {
  const unknown = unknownKey(definition, { of: "field of a webhook", keys: Object.keys(fields) });
  if (unknown !== undefined) return unknown;
  for (const [name, check] of Object.entries(fields)) {
    const fault = check(Reflect.get(definition, name));
    if (fault !== undefined) return `\`${name}\` ${fault}`;
  }
  return undefined;
}

/**
 * Defines a verified webhook. The schema `payload` types the payload of `handle`. Throws `TypeError` for
 * a secret that is a text, and for an unknown field.
 *
 * @example
 * import { defineWebhook } from "kit/webhooks";
 *
 * export default defineWebhook({
 *   secret: (env) => env.GITHUB_SECRET,
 *   scheme: "github",
 *   handle: ({ payload, dispatch }) => dispatch("reviewer", { id: "inbox", input: payload }),
 * });
 */
export function defineWebhook<Payload = unknown>(
  definition: Omit<WebhookDefinition<Payload>, "kind">,
): WebhookDefinition {
  const fault = faultOfWebhook(definition);
  if (fault !== undefined) throw new TypeError(toSentence(fault));
  return { ...(definition as Omit<WebhookDefinition, "kind">), kind: "kit.webhook" };
}

export function isWebhookDefinition(value: unknown): value is WebhookDefinition {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "kit.webhook";
}

/** Returns the secret of a webhook, or several; undefined if there is none, or an empty one. */
export function findSecret(
  { secret: find }: Pick<WebhookDefinition, "secret">,
  env: Readonly<Record<string, string | undefined>>,
): string | readonly string[] | undefined {
  const secret = find(env);
  if (secret === undefined || secret.length === 0) return undefined;
  return typeof secret !== "string" && secret.includes("") ? undefined : secret;
}
