import { keyOfSender } from "../../app/service/session-input.ts";
import { KitError } from "../../base/kit-error.ts";
import type { RouteRequest } from "../route.ts";

/**
 * The `Idempotency-Key` of a request, as its sender's own: the same work, asked for again by the same principal under
 * the same key, is done once. Throws `invalid_request` unless it has 1 to 128 printable ASCII characters.
 */
export function readIdempotencyKey({
  header,
  principal,
}: Pick<RouteRequest, "header" | "principal">): string | undefined {
  const key = header("idempotency-key");
  if (key === undefined) return undefined;
  if (/^[\x20-\x7e]{1,128}$/.test(key)) return keyOfSender(principal, key);
  throw invalidHeader("idempotency-key", "must have 1 to 128 printable ASCII characters");
}

/**
 * The index of the event after which a stream goes on: `Last-Event-ID`, which a browser sends when it
 * connects again, before `after` of the query, which it repeats. Throws `invalid_request`.
 */
export function readEventPosition(
  { header }: Pick<RouteRequest, "header">,
  query: { readonly after?: number | undefined },
): number | undefined {
  const id = header("last-event-id");
  if (id === undefined || id === "") return query.after;
  if (/^\d{1,15}$/.test(id)) return Number(id);
  throw invalidHeader("last-event-id", "must be the id of an event of this stream");
}

/** Whether a stream is asked for by who has had a part of it: a browser says so whenever it connects again. */
export function isReconnect({ header }: Pick<RouteRequest, "header">): boolean {
  return (header("last-event-id") ?? "") !== "";
}

function invalidHeader(name: string, message: string): KitError {
  return new KitError({
    code: "invalid_request",
    message: "A header is not valid.",
    meta: { issues: [{ path: `headers.${name}`, message }] },
  });
}
