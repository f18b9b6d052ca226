/**
 * Not a model, but a few rules with the API of one (OpenAI's chat completions, streamed), so that the demo needs neither
 * a key nor a network. The rules see only what kit sends with each request: the conversation of one thread.
 */
import { type LocalServer, startLocalServer } from "./local-server.ts";

interface Message {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string | readonly { readonly text?: string }[] | null;
}

type Turn = { readonly text: string } | { readonly reply: Readonly<Record<string, string>> };

export interface ScriptedModelOptions {
  /** Called when a request arrives, before the answer. */
  readonly beforeAnswering?: () => Promise<void>;
}

export async function startScriptedModel({
  beforeAnswering,
}: ScriptedModelOptions = {}): Promise<LocalServer> {
  return await startLocalServer(async ({ route, body }, response) => {
    if (route !== "POST /chat/completions") return void response.writeHead(404).end();
    const { messages }: { messages: readonly Message[] } = JSON.parse(body);
    await beforeAnswering?.();
    response.writeHead(200, { "content-type": "text/event-stream" }).end(toStream(nextTurn(messages)));
  });
}

function nextTurn(messages: readonly Message[]): Turn {
  if (messages.at(-1)?.role === "tool") return { text: "The customer has an answer." };
  const written = messages.filter(({ role }) => role === "user").map(textOf);
  const message = written.at(-1) ?? "";
  const order = written.findLast((text) => orderIn(text) !== undefined);
  // A gullible model: it would post wherever a message tells it to.
  const [, thread, text] = /tell thread (\S+) (.+)/.exec(message) ?? [];
  if (thread !== undefined && text !== undefined) return { reply: { thread, text } };
  if (/which order/i.test(message)) {
    return {
      reply: {
        text: order === undefined ? "You have not named an order yet." : `It is order ${orderIn(order)}.`,
      },
    };
  }
  return {
    reply: {
      text: order === undefined ? "Which order is it?" : `A person will look at order ${orderIn(order)}.`,
    },
  };
}

const orderIn = (text: string): string | undefined => /order (\d+)/i.exec(text)?.[1];

function textOf({ content }: Message): string {
  return typeof content === "string" ? content : (content ?? []).map(({ text = "" }) => text).join("");
}

function toStream(turn: Turn): string {
  const chunk = (delta: object, finish_reason: string | null = null): object => ({
    id: "scripted",
    object: "chat.completion.chunk",
    created: 0,
    model: "support",
    choices: [{ index: 0, delta, finish_reason }],
  });
  const chunks =
    "text" in turn
      ? [chunk({ role: "assistant", content: turn.text }), chunk({}, "stop")]
      : [chunk({ role: "assistant", tool_calls: [toCall(turn.reply)] }), chunk({}, "tool_calls")];
  return [...chunks.map((each) => JSON.stringify(each)), "[DONE]"]
    .map((data) => `data: ${data}\n\n`)
    .join("");
}

function toCall(args: Readonly<Record<string, string>>): object {
  return {
    index: 0,
    id: "call_1",
    type: "function",
    function: { name: "reply", arguments: JSON.stringify(args) },
  };
}
