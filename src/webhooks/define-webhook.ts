import type { StandardSchemaV1 } from "@standard-schema/spec";
import { toSentence, unknownKey } from "../base/error-text.ts";
import { isRecord } from "../base/record.ts";
import { isStandardSchema } from "../base/standard-schema.ts";
import type { Dispatch, DispatchInput, RunCalls, StartRun } from "../protocol/run-calls.ts";
import type { VerifiedWebhook } from "./verify-webhook.ts";
import { type WebhookScheme, webhookSchemes } from "./webhook-scheme.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** A file in `src/webhooks/` as its default export: `POST /webhooks/<name>`. */
export interface WebhookDefinition<Payload = unknown> {
  readonly kind: "kit.webhook";
  readonly scheme: WebhookScheme;
  /** Finds the secret, or several while one takes the place of another; none, and nothing is accepted. */
  readonly secret: (env: Env) => string | readonly string[] | undefined;
  /** Seconds that the sender's clock may differ by; default 300. */
  readonly toleranceSeconds?: number;
  /**
   * Checks the payload before `handle`, which is given what the schema makes of it. The sender of what does not fit hears
   * 400 with an issue for each fault. Default: any JSON.
   */
  readonly payload?: StandardSchemaV1<unknown, Payload> | { readonly [keyword: string]: unknown } | undefined;
  /**
   * Says what a delivery is for. Senders wait a few seconds only: dispatch the work, and return. What it
   * gives is the reply's body; by default the receipts of what was dispatched, with status 202.
   */
  handle(context: WebhookContext<Payload>): unknown;
}

export interface WebhookContext<Payload = unknown> {
  readonly delivery: VerifiedWebhook;
  /** The delivery's body, JSON or the fields of a form, as the schema `payload` gives it. */
  readonly payload: Payload;
  readonly env: Env;
  /**
   * Gives an input to a continuing session; it is on disk when this resolves. A delivery that comes again
   * is told by its id, and its inputs are not given twice.
   */
  dispatch(agent: Parameters<Dispatch>[0], input: WebhookDispatch): ReturnType<Dispatch>;
  /**
   * Starts a run of a workflow, once for a delivery that comes again. Await its `result` only where it is quick: with the
   * `signal`, no longer than the sender does.
   */
  readonly startRun: StartRun;
  /** A run that is known by its id, such as one that waits for what is delivered here. */
  readonly getRun: RunCalls["getRun"];
  /** Fires when the sender has gone. What throws then is tried again when the delivery comes again. */
  readonly signal: AbortSignal;
}

/** An input; the delivery's id is its idempotency key. */
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
  payload: (value) =>
    value === undefined || isStandardSchema(value) || isRecord(value)
      ? undefined
      : "must be a schema: of zod, valibot, …, or JSON Schema",
  handle: (value) => (typeof value === "function" ? undefined : "must be a function"),
};

/** Checks the fields of a webhook that plain JavaScript may have defined; messages never quote a value. */
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
 * Defines a verified webhook. The payload that `handle` is given is typed by the schema `payload`. Throws `TypeError` for
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

/** The secret of a webhook, or several; undefined where it finds none, or one that would sign nothing. */
export function findSecret(
  { secret: find }: Pick<WebhookDefinition, "secret">,
  env: Readonly<Record<string, string | undefined>>,
): string | readonly string[] | undefined {
  const secret = find(env);
  if (secret === undefined || secret.length === 0) return undefined;
  return typeof secret !== "string" && secret.includes("") ? undefined : secret;
}
