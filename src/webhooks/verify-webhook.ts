import { checkDelivery, type WebhookSecret } from "./webhook-scheme.ts";

export interface VerifyWebhookOptions extends WebhookSecret {
  /** Seconds that the sender's clock may differ by; default 300. GitHub signs no time. */
  readonly toleranceSeconds?: number | undefined;
  /** Remembers deliveries, so that each is told apart from its repetitions. */
  readonly deliveries?: DeliveryLog;
  /** Name of the sender when several senders share a log: two of them may choose the same id. Default: the scheme. */
  readonly source?: string | undefined;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** Remembers which deliveries there were. */
export interface DeliveryLog {
  /** Takes an id until a time (milliseconds since 1970); false when it was taken already. */
  claim(deliveryId: string, until: number): boolean | Promise<boolean>;
  /** Gives an id back, for work that failed; without it, a delivery counts whatever became of it. */
  release?(deliveryId: string): void | Promise<void>;
}

/** A delivery that its sender has signed. */
export interface VerifiedWebhook {
  /** Names this delivery and all its repetitions: what the sender has signed as its id, or the body's digest. */
  readonly deliveryId: string;
  /** @deprecated Use `deliveryId`. */
  readonly delivery_id: string;
  /** The delivery was here before: answer as to the first, and do nothing. Always false without `deliveries`. */
  readonly duplicate: boolean;
  readonly headers: Headers;
  /** As it came. */
  readonly body: Uint8Array;
  /** After work that failed: the delivery's repetition is not a duplicate, so that it is tried again. */
  release(): Promise<void>;
  text(): string;
  /** Throws `SyntaxError` for a body that is not JSON. */
  json(): unknown;
}

/**
 * Authenticates the sender of a webhook: checks the signature over the raw body, in constant time, and the sender's time
 * where it is signed.
 *
 * Throws `KitError` `invalid_signature` or `stale_timestamp` (both 401), `TypeError` for an empty secret.
 *
 * @example
 * import { verifyWebhook } from "kit/webhooks";
 *
 * declare const request: Request;
 * const { deliveryId, body } = await verifyWebhook(request, { scheme: "github", secret: "a long random text" });
 */
export async function verifyWebhook(
  request:
    | Request
    | { readonly headers: Headers | Readonly<Record<string, string>>; readonly body: Uint8Array | string },
  options: VerifyWebhookOptions,
): Promise<VerifiedWebhook> {
  const headers = new Headers(request.headers);
  const body = await bytesOf(request);
  const now = (options.now ?? Date.now)();
  const toleranceSeconds = options.toleranceSeconds ?? 300;
  const { delivery_id } = await checkDelivery({ headers, body }, options, { now, toleranceSeconds });
  // Senders sign each repetition of a delivery anew, for hours; past twice the tolerance a copied delivery is refused.
  const keptSeconds = Math.max(86_400, 2 * toleranceSeconds);
  const key = `${options.source ?? options.scheme}:${delivery_id}`;
  const isNew = (await options.deliveries?.claim(key, now + keptSeconds * 1_000)) ?? true;
  const release = async (): Promise<void> => {
    if (isNew) await options.deliveries?.release?.(key);
  };
  const text = (): string => new TextDecoder("utf-8", { fatal: true }).decode(body);
  return {
    deliveryId: delivery_id,
    delivery_id,
    duplicate: !isNew,
    headers,
    body,
    release,
    text,
    json: () => JSON.parse(text()),
  };
}

async function bytesOf(
  request: Request | { readonly body: Uint8Array | string },
): Promise<Uint8Array<ArrayBuffer>> {
  if (request instanceof Request) return new Uint8Array(await request.arrayBuffer());
  return typeof request.body === "string"
    ? new TextEncoder().encode(request.body)
    : new Uint8Array(request.body);
}

/**
 * Remembers deliveries as long as the process lives, at most `max` of them (default 100,000).
 *
 * @example
 * import { createMemoryDeliveries } from "kit/webhooks";
 *
 * const deliveries = createMemoryDeliveries({ max: 10_000 });
 */
export function createMemoryDeliveries(options: { readonly max?: number } = {}): DeliveryLog {
  const max = options.max ?? 100_000;
  const taken = new Map<string, number>();
  return {
    claim(deliveryId, until) {
      const now = Date.now();
      if ((taken.get(deliveryId) ?? 0) > now) return false;
      taken.delete(deliveryId);
      for (const [id, end] of taken) {
        if (end > now && taken.size < max) break;
        taken.delete(id);
      }
      taken.set(deliveryId, until);
      return true;
    },
    release(deliveryId) {
      taken.delete(deliveryId);
    },
  };
}
