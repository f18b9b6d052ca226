import type { DispatchReceipt } from "../protocol/dispatch.ts";
import type { VerifiedWebhook } from "./verify-webhook.ts";
import type { WebhookScheme } from "./webhook-scheme.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** A file in `src/webhooks/` as its default export: `POST /webhooks/<name>`. */
export interface WebhookDefinition {
  readonly kind: "kit.webhook";
  readonly scheme: WebhookScheme;
  /** Finds the secret, or several while one takes the place of another; none, and nothing is accepted. */
  readonly secret: (env: Env) => string | readonly string[] | undefined;
  /** Seconds that the sender's clock may differ by; default 300. */
  readonly toleranceSeconds?: number;
  /**
   * Says what a delivery is for. Senders wait a few seconds only: dispatch the work, and return. What it
   * gives is the reply's body; by default the receipts of what was dispatched, with status 202.
   */
  handle(context: WebhookContext): unknown;
}

export interface WebhookContext {
  readonly delivery: VerifiedWebhook;
  /** The delivery's body: JSON, or the fields of a form. */
  readonly payload: unknown;
  readonly env: Env;
  /**
   * Gives an input to a continuing session; it is on disk when this resolves. A delivery that comes again
   * is told by its id, and its inputs are not given twice.
   */
  dispatch(agent: string, input: WebhookDispatch): Promise<DispatchReceipt>;
}

export interface WebhookDispatch {
  /** The agent's instance: a thread, a pull request. */
  readonly id: string;
  /** Default: "default". */
  readonly session?: string;
  /** The message, or JSON that is given as its text. */
  readonly input: unknown;
}

/** Defines a verified webhook. */
export function defineWebhook(definition: Omit<WebhookDefinition, "kind">): WebhookDefinition {
  return { ...definition, kind: "kit.webhook" };
}

export function isWebhookDefinition(value: unknown): value is WebhookDefinition {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "kit.webhook";
}
