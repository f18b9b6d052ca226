import { setTimeout as delay } from "node:timers/promises";

export interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into whatever was sent.
  readonly body: any;
}

export async function send(
  url: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const reply = await fetch(url, {
    ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
    headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
  });
  return { status: reply.status, body: await reply.json() };
}

/** Asks for work under a key until it is answered, over broken connections too. Gives the answer's body. */
export async function askUntilAnswered(
  url: string,
  { key, body }: { readonly key: string; readonly body: unknown },
): Promise<Answer["body"]> {
  for (;;) {
    try {
      const answer = await send(url, body, { "idempotency-key": key });
      if (answer.status === 200) return answer.body;
      if (answer.status !== 503) throw new RefusedError(`${answer.status} ${JSON.stringify(answer.body)}`);
    } catch (error) {
      if (error instanceof RefusedError) throw error;
    }
    await delay(20);
  }
}

/**
 * Dispatches an input until it is accepted, as a careful client does: with a key, so that it is one input
 * however often it is sent, and to whichever server. Gives its id.
 */
export async function dispatchUntilAccepted(
  urls: readonly string[],
  { instance, input }: { readonly instance: string; readonly input: string },
): Promise<string> {
  const headers = { "idempotency-key": input };
  for (let time = Number(input.slice(1)); ; time += 1) {
    const url = urls[time % urls.length];
    try {
      const { status, body } = await send(`${url}/agents/worker/${instance}/dispatch`, { input }, headers);
      if (status === 202) return body.dispatch_id;
      if (status !== 503 && status !== 429) throw new RefusedError(`${status} ${JSON.stringify(body)}`);
    } catch (error) {
      if (error instanceof RefusedError) throw error;
      // Nobody listens, or the connection broke before the answer.
    }
    await delay(20);
  }
}

class RefusedError extends Error {}

/** Resolves once nothing waits and nothing runs. */
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
