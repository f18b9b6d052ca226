import { setTimeout as delay } from "node:timers/promises";

export interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads any part of the answer.
  readonly body: any;
}

export async function send(
  url: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const request = {
    ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
    headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
  };
  // A server closes idle connections, and one without file handles refuses some: what can be repeated is sent again.
  const isRepeatable = body === undefined || "idempotency-key" in headers;
  for (let triesLeft = isRepeatable ? 20 : 0; ; triesLeft -= 1) {
    try {
      const reply = await fetch(url, request);
      return { status: reply.status, body: await reply.json() };
    } catch (error) {
      if (triesLeft === 0) throw error;
      await delay(50);
    }
  }
}

/** A request that the test repeats until it is accepted: because of its key, it counts once. */
export interface KeyedRequest {
  readonly path: string;
  readonly key: string;
  readonly body: unknown;
  /** The index of the server that is tried first. */
  readonly from?: number;
}

/** Sends a request like a careful client: retries over broken connections, and at other servers. Returns the body of the answer. */
export async function sendUntilAccepted(
  urls: readonly string[],
  { path, key, body, from = 0 }: KeyedRequest,
): Promise<Answer["body"]> {
  for (let time = from; ; time += 1) {
    try {
      const answer = await send(`${urls[time % urls.length]}${path}`, body, { "idempotency-key": key });
      if (answer.status < 300) return answer.body;
      if (answer.status !== 503 && answer.status !== 429) {
        throw new RefusedError(`${answer.status} ${JSON.stringify(answer.body)}`);
      }
    } catch (error) {
      if (error instanceof RefusedError) throw error;
      // No server listens, or the connection broke before the answer.
    }
    await delay(20);
  }
}

class RefusedError extends Error {}

/** Resolves once no work waits or runs. */
export async function untilSettled(url: string): Promise<void> {
  for (;;) {
    const counts = await Promise.all(
      ["queued", "running"].map(async (status) => {
        const { body } = await send(`${url}/dispatches?status=${status}&limit=1`);
        return body.dispatches.length;
      }),
    );
    if (counts.every((count) => count === 0)) return;
    await delay(20);
  }
}
