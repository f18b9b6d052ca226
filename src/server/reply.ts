// Nothing this service sends may be framed, sniffed, cached by others or read by another site.
const commonHeaders = {
  "cache-control": "no-store",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

const jsonHeaders = {
  ...commonHeaders,
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "content-type": "application/json; charset=utf-8",
};

const eventStreamHeaders = {
  ...commonHeaders,
  "cache-control": "no-store, no-transform",
  "content-type": "text/event-stream; charset=utf-8",
  "x-accel-buffering": "no",
};

/** A reply in parts, for where there is no `Response`. */
export interface ReplyParts {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A JSON reply with the headers that every reply of kit has. */
export function jsonReply(value: unknown, status = 200): Response {
  return new Response(JSON.stringify(value), { status, headers: jsonHeaders });
}

/** A reply that is a stream of events. No proxy on its way may hold it back. */
export function eventStreamReply(body: ReadableStream<Uint8Array> | null): Response {
  return new Response(body, { status: 200, headers: eventStreamHeaders });
}

/** A JSON reply of any status, with more headers. */
export function jsonParts(value: unknown, { status, headers }: Omit<ReplyParts, "body">): ReplyParts {
  return { status, headers: { ...jsonHeaders, ...headers }, body: JSON.stringify(value) };
}

/** An HTML reply; `contentSecurityPolicy` says what the page may load. */
export function htmlReply(html: string, contentSecurityPolicy: string): Response {
  return new Response(html, {
    status: 200,
    headers: {
      ...commonHeaders,
      "content-security-policy": contentSecurityPolicy,
      "content-type": "text/html; charset=utf-8",
      vary: "accept",
    },
  });
}

/** A reply without a body. */
export function emptyReply(headers: Readonly<Record<string, string>>): Response {
  return new Response(null, { status: 204, headers: { ...commonHeaders, ...headers } });
}
