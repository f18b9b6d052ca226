import { once } from "node:events";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { type ProviderAnswer, providerProtocols } from "../../../src/testing/provider-server/protocols.ts";

/** A provider over HTTP that runs longer than the servers that use it. */
export interface ModelServer {
  /** The value of `providers.local.base_url`. */
  readonly baseUrl: string;
  /** The reasons of refused requests: histories that no provider would accept. */
  readonly refused: readonly string[];
  /** The number of begun answers whose reader has disconnected. */
  readonly abandoned: number;
  /** Resolves once the total number of requests is reached. */
  requested(count: number): Promise<void>;
  close(): Promise<void>;
}

/** The model's last answer to a prompt such as `#7`. */
export const answerTo = (prompt: string): string => `Done with ${prompt}.`;

/** The number of letters in the answer to the prompt `long`; the prompt `endless` gets a word a second. */
export const longAnswer = 200_000;

interface ChatMessage {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?: readonly { readonly id: string }[];
  readonly tool_call_id?: string;
}

/** Returns the model's answer to a prompt, given the number of calls with a result. */
export type ModelScript = (prompt: string, results: number) => ProviderAnswer;

/**
 * Starts a provider whose model answers with the script, or `#7` with a call of the tool `keep` (odd numbers) or `note` (even
 * ones) and then with a text; it takes a few milliseconds, which `random` determines.
 */
export async function startModelServer(
  random: (below: number) => number,
  script: ModelScript = answer,
): Promise<ModelServer> {
  const protocol = providerProtocols.find(({ provider }) => provider === "local");
  if (protocol === undefined) throw new Error("No protocol of that name.");
  const refused: string[] = [];
  const waiting: { readonly count: number; readonly resolve: () => void }[] = [];
  let count = 0;
  let abandoned = 0;
  const server = createServer(async (request, response) => {
    count += 1;
    for (const waiter of waiting) if (waiter.count <= count) waiter.resolve();
    response.on("close", () => {
      if (!response.writableFinished) abandoned += 1;
    });
    // A killed server can leave half a request.
    const body = await text(request).catch(() => "");
    if (body === "") return;
    const { messages }: { readonly messages: readonly ChatMessage[] } = JSON.parse(body);
    const fault = faultOf(messages);
    if (fault !== undefined) {
      refused.push(fault);
      response.writeHead(400, { "content-type": "application/json" }).end(protocol.errorBody(fault));
      return;
    }
    const user = messages.findLastIndex(({ role }) => role === "user");
    const prompt = textOf(messages[user]);
    response.writeHead(200, { "content-type": "text/event-stream" });
    const results = messages.slice(user).filter(({ role }) => role === "tool").length;
    for (const chunk of protocol.chunks(script(prompt, results))) {
      await delay(prompt === "endless" ? 1_000 : random(4));
      if (response.destroyed) return;
      response.write(chunk);
    }
    response.end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    baseUrl: `http://127.0.0.1:${port}${protocol.basePath}`,
    refused,
    get abandoned() {
      return abandoned;
    },
    async requested(expected) {
      if (count >= expected) return;
      await new Promise<void>((resolve) => waiting.push({ count: expected, resolve }));
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

function answer(prompt: string, results: number): ProviderAnswer {
  const number = Number(/^#(\d+)$/.exec(prompt)?.[1]);
  if (prompt === "long") return { text: "x".repeat(longAnswer) };
  if (Number.isNaN(number) || results > 0) return { text: answerTo(prompt) };
  const name = number % 2 === 1 ? "keep" : "note";
  return { toolCall: { id: `call_${number}`, name, args: JSON.stringify({ number }) } };
}

/** Checks that every call has its result right after it, as providers require. */
function faultOf(messages: readonly ChatMessage[]): string | undefined {
  for (const [index, message] of messages.entries()) {
    const called = (message.tool_calls ?? []).map(({ id }) => id);
    const results = messages.slice(index + 1, index + 1 + called.length);
    const answered = results.map(({ tool_call_id }) => tool_call_id);
    if (called.join() !== answered.join()) return `${called.join()} was answered by ${answered.join()}`;
  }
  return undefined;
}

function textOf(message: ChatMessage | undefined): string {
  const content = message?.content;
  if (typeof content === "string") return content;
  const parts = Array.isArray(content) ? content : [];
  return parts.map((part: { readonly text?: string }) => part.text ?? "").join("");
}
