import { checkDelivery, type WebhookSecret } from "./webhook-scheme.ts";

export interface VerifyWebhookOptions extends WebhookSecret {
  /** Maximum difference of the sender's clock in seconds; default 300. GitHub signs no time. */
  readonly toleranceSeconds?: number | undefined;
  /** Remembers deliveries, to detect repeated ones. */
  readonly deliveries?: DeliveryLog;
  /** Name of the sender. Set it if several senders share `deliveries`, since two can choose the same id. Default: the scheme. */
  readonly source?: string | undefined;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** Remembers the ids of deliveries. */
export interface DeliveryLog {
  /** Claims an id until a time (milliseconds since 1970). Returns false if it is already claimed. */
  claim(deliveryId: string, until: number): boolean | Promise<boolean>;
  /** Releases the id of a delivery whose work failed. Without this method, a failed delivery is also remembered. */
  release?(deliveryId: string): void | Promise<void>;
}

/** A delivery with a valid signature. */
export interface VerifiedWebhook {
  /** The same for all repetitions of the delivery: the id that the sender signed, or the body's digest. */
  readonly deliveryId: string;
  /** Whether the delivery is a repetition: reply as to the first one, and do nothing. Always false without `deliveries`. */
  readonly duplicate: boolean;
  readonly headers: Headers;
  /** The raw body. */
  readonly body: Uint8Array;
  /** Call it after failed work: the repetition then does not count as a duplicate and is tried again. */
  release(): Promise<void>;
  text(): string;
  /** Throws `SyntaxError` for a body that is not JSON. */
  json(): unknown;
}

/**
 * Authenticates the sender of a webhook: checks the signature over the raw body in constant time, and the timestamp if
 * the sender signs one.
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
  const { delivery_id: deliveryId } = await checkDelivery({ headers, body }, options, {
    now,
    toleranceSeconds,
  });
  // Senders repeat a delivery for hours and sign each repetition again; a copied delivery is stale after twice the tolerance.
  const keptSeconds = Math.max(86_400, 2 * toleranceSeconds);
  const key = `${options.source ?? options.scheme}:${deliveryId}`;
  const isNew = (await options.deliveries?.claim(key, now + keptSeconds * 1_000)) ?? true;
  const release = async (): Promise<void> => {
    if (isNew) await options.deliveries?.release?.(key);
  };
  const text = (): string => new TextDecoder("utf-8", { fatal: true }).decode(body);
  return {
    deliveryId,
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
 * Remembers deliveries in memory, at most `max` of them (default 100,000).
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
