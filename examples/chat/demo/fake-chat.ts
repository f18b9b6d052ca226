/** A stand-in for Slack, Teams and the like over real HTTP: threads, signed webhooks, and a route for bots. */
import { randomBytes, randomUUID } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { startLocalServer } from "./local-server.ts";
import { sign } from "./sign.ts";

export interface ChatMessage {
  readonly id: string;
  readonly thread: string;
  readonly author: string;
  readonly from_bot: boolean;
  readonly text: string;
}

/** The differences of a delivery from a correct one. */
export interface DeliveryOptions {
  /** Default: the chat's secret. */
  readonly secret?: string;
  /** Seconds since 1970; default: now. */
  readonly timestamp?: number;
}

export interface FakeChat extends AsyncDisposable {
  readonly url: string;
  /** The chat signs deliveries with the secret; a bot authenticates with the token. */
  readonly secret: string;
  readonly token: string;
  /** Delivers every new message to this address from now on. */
  subscribe(webhook: string): void;
  /** Adds a person's message to its thread, delivers it, and returns the webhook's answer. */
  write(message: Pick<ChatMessage, "thread" | "author" | "text">): Promise<Response>;
  /** Repeats the last delivery, like a chat that missed the answer. */
  repeat(): Promise<Response>;
  /** Delivers any body. */
  deliver(body: string, options?: DeliveryOptions): Promise<Response>;
  /** Waits until bots have sent at least `count` messages in a thread, and returns them. */
  replies(thread: string, count: number): Promise<readonly string[]>;
  /** The webhook's answers to deliveries of bots' messages. */
  echoes(): Promise<readonly unknown[]>;
}

export interface FakeChatOptions {
  /** Called when a bot's message arrives, before its confirmation. */
  readonly beforeConfirming?: () => Promise<void>;
}

/** The time after which a missing reply is an error. */
const patienceSeconds = 60;

export async function startFakeChat({ beforeConfirming }: FakeChatOptions = {}): Promise<FakeChat> {
  const secret = `whsec_${randomBytes(24).toString("base64")}`;
  const token = randomUUID();
  const messages: ChatMessage[] = [];
  const byKey = new Map<string, ChatMessage>();
  const echoes: Promise<unknown>[] = [];
  const changes = new EventEmitter();
  let webhook: string | undefined;
  let last = { id: "", body: "" };

  const server = await startLocalServer(async ({ route, headers, body }, response) => {
    if (headers.authorization !== `Bearer ${token}`) return void response.writeHead(401).end();
    if (route !== "POST /messages") return void response.writeHead(404).end();
    const { thread, text }: { thread: string; text: string } = JSON.parse(body);
    if (!messages.some((message) => message.thread === thread)) return void response.writeHead(404).end();
    const key = String(headers["idempotency-key"]);
    let message = byKey.get(key);
    if (message === undefined) {
      message = { id: randomUUID(), thread, author: "support", from_bot: true, text };
      byKey.set(key, message);
      messages.push(message);
      echoes.push(echo(message));
    }
    await beforeConfirming?.();
    response.writeHead(201, { "content-type": "application/json" }).end(JSON.stringify(message));
    changes.emit("confirmed");
  });

  function send(delivery: { readonly id: string; readonly body: string }, options: DeliveryOptions = {}) {
    if (webhook === undefined) throw new Error("The chat has no subscriber.");
    const timestamp = options.timestamp ?? Math.floor(Date.now() / 1000);
    const signature = sign({ ...delivery, timestamp }, options.secret ?? secret);
    const headers = { "content-type": "application/json", ...signature };
    return fetch(webhook, { method: "POST", headers, body: delivery.body });
  }

  const echo = (message: ChatMessage): Promise<unknown> =>
    send({ id: randomUUID(), body: JSON.stringify({ message }) })
      .then((response) => response.json())
      .catch(() => "The webhook could not be reached.");

  return {
    url: server.url,
    secret,
    token,
    subscribe(url) {
      webhook = url;
    },
    write(written) {
      const message = { ...written, id: randomUUID(), from_bot: false };
      messages.push(message);
      last = { id: randomUUID(), body: JSON.stringify({ message }) };
      return send(last);
    },
    repeat: () => send(last),
    deliver: (body, options) => send({ id: randomUUID(), body }, options),
    async replies(thread, count) {
      const signal = AbortSignal.timeout(patienceSeconds * 1_000);
      for (;;) {
        const found = messages.filter((message) => message.from_bot && message.thread === thread);
        if (found.length >= count) return found.map(({ text }) => text);
        await once(changes, "confirmed", { signal }).catch((cause) => {
          throw new Error(`No reply came in ${thread} for ${patienceSeconds} seconds.`, { cause });
        });
      }
    },
    echoes: () => Promise.all(echoes),
    async [Symbol.asyncDispose]() {
      await Promise.all(echoes);
      await server[Symbol.asyncDispose]();
    },
  };
}
