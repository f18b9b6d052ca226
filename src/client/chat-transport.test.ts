import {
  type AbstractChat,
  type ChatInit,
  type ChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from "ai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { serveForTests } from "../server/testing/serve-for-tests.ts";
import { KitChatTransport, KitClient } from "./index.ts";

// Its types bring those of a page, which the tests of the server do not have.
const react = "@ai-sdk/react";
const { Chat }: { readonly Chat: new (init: ChatInit<UIMessage>) => AbstractChat<UIMessage> } = await import(
  react
);

let client: KitClient;
let api: string;
const served = serveForTests({
  files: {
    "src/agents/careful.ts": `export const triggers = { webhook: true };
const pay = { name: "pay", description: "Pays.", input: { type: "object", properties: { cents: { type: "integer" } } }, needsApproval: true, editableArguments: true, execute: ({ cents }) => "Paid " + cents };
export default { kind: "kit.agent", describe: async () => ({ tools: [pay] }) };
`,
  },
});
beforeAll(() => {
  client = new KitClient({ baseUrl: served.url });
  api = `${served.url}/agents/echo/page/ui`;
});
afterAll(() => expect(served.errors).toEqual([]));

/** A fetch whose event streams break off after every few reads. */
function fragile(reads: number): { readonly fetch: typeof fetch; readonly cuts: () => number } {
  let cuts = 0;
  return {
    cuts: () => cuts,
    async fetch(input, init) {
      const response = await fetch(input, init);
      if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
      const reader = response.body?.getReader();
      let left = reads;
      const body = new ReadableStream<Uint8Array>({
        async pull(controller) {
          const next = await reader?.read();
          if (next === undefined || next.done) return controller.close();
          left -= 1;
          if (left >= 0) return controller.enqueue(next.value);
          cuts += 1;
          await reader?.cancel();
          // Half of a frame arrives.
          if (cuts % 2 === 0) controller.enqueue(next.value.slice(0, next.value.length / 2));
          controller.error(new TypeError("network error"));
        },
        cancel: () => reader?.cancel(),
      });
      return new Response(body, { status: response.status, headers: response.headers });
    },
  };
}

const textOf = (message: UIMessage | undefined): string =>
  (message?.parts ?? []).map((part) => (part.type === "text" ? part.text : "")).join("");

test("an answer whose connection is cut again and again arrives whole, each word once", async () => {
  const { fetch: send, cuts } = fragile(2);
  const transport: ChatTransport<UIMessage> = new KitChatTransport({ api, fetch: send });
  const chat = new Chat({ id: "cut", transport });
  const text = "calmly one two three four five six seven eight nine ten eleven twelve thirteen";
  await chat.sendMessage({ text });
  expect([chat.status, chat.error, textOf(chat.messages.at(-1))]).toEqual(["ready", undefined, text]);
  expect(chat.messages).toHaveLength(2);
  expect(cuts()).toBeGreaterThan(1);
  // A page that comes back starts with the same messages.
  const stored = await served.send("/agents/echo/page/ui/cut/messages");
  expect(stored.body.messages).toEqual(JSON.parse(JSON.stringify(chat.messages)).map(withoutUnset));
}, 20_000);

const withoutUnset = ({ metadata, ...message }: UIMessage): object =>
  metadata === undefined ? message : { ...message, metadata };

test("a page that leaves stops nothing; the transport's stop ends the answer that it shows", async () => {
  const transport = new KitChatTransport({ api });
  const chat = new Chat({ id: "left", transport });
  const sent = chat.sendMessage({ text: "slow" });
  const newest = async () =>
    (await client.agents.operations("echo", { id: "page", session: "left", limit: 1 })).operations[0];
  await expect.poll(() => textOf(chat.messages.at(-1))).toContain("2 ");
  await chat.stop();
  await sent;
  expect((await newest())?.status).toBe("working");
  const other = new Chat({ id: "left", transport: new KitChatTransport({ api }) });
  const resumed = other.resumeStream();
  await expect.poll(() => textOf(other.messages.at(-1))).toContain("4 ");
  expect(textOf(other.messages.at(-1))).toMatch(/^0 1 2 3 4 /);
  expect(await transport.stop("left")).toBe(true);
  await resumed;
  expect((await newest())?.status).toBe("aborted");
  expect([other.status, await transport.stop("left")]).toEqual(["ready", false]);
  await chat.sendMessage({ text: "the next" });
  expect(textOf(chat.messages.at(-1))).toBe("the next");
});

test("calls are decided by useChat's own means, or by the transport with other arguments", async () => {
  const transport = new KitChatTransport({ api: `${served.url}/agents/careful/page/ui` });
  const open = (id: string) =>
    new Chat({
      id,
      transport,
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    });
  const asked = async (id: string) => {
    const chat = open(id);
    await chat.sendMessage({ text: "pay 5" });
    const part = chat.messages.at(-1)?.parts.find(({ type }) => type === "tool-pay");
    return { chat, approval: part !== undefined && "approval" in part ? (part.approval?.id ?? "") : "" };
  };
  const states = (chat: AbstractChat<UIMessage>) =>
    chat.messages.at(-1)?.parts.flatMap((part) => ("output" in part ? [part.state, part.output] : []));
  const approved = await asked("approved");
  await approved.chat.addToolApprovalResponse({ id: approved.approval, approved: true });
  await expect.poll(() => textOf(approved.chat.messages.at(-1))).toBe("It is done.");
  expect(states(approved.chat)).toEqual(["output-available", "Paid 5"]);
  const edited = await asked("edited");
  const decision = {
    chatId: "edited",
    messageId: edited.chat.messages.at(-1)?.id ?? "",
    approvalId: edited.approval,
  };
  await transport.approve({ ...decision, approved: true, args: { cents: 3 } });
  await edited.chat.resumeStream();
  await expect
    .poll(() => states(edited.chat))
    .toEqual(["output-available", expect.stringContaining("Paid 3")]);
  expect(edited.chat.messages).toHaveLength(2);
  await expect(transport.approve({ ...decision, approved: true })).rejects.toThrow("approved already");
});

test("a refusal is a sentence, and a server that does not answer for a while is asked again", async () => {
  const chat = new Chat({
    id: "r",
    transport: new KitChatTransport({ api: `${served.url}/agents/none/page/ui` }),
  });
  await chat.sendMessage({ text: "hello" });
  expect([chat.status, chat.error?.message]).toEqual(["error", "There is no agent of this name."]);
  let failures = 3;
  const send: typeof fetch = async (input, init) => {
    failures -= 1;
    if (failures >= 0) throw new TypeError("fetch failed");
    return await fetch(input, init);
  };
  const later = new Chat({ id: "later", transport: new KitChatTransport({ api, fetch: send }) });
  await later.sendMessage({ text: "hello" });
  expect([later.status, textOf(later.messages.at(-1))]).toEqual(["ready", "hello"]);
  const gone = new Chat({
    id: "gone",
    transport: new KitChatTransport({ api: "http://127.0.0.1:9/agents/a/b/ui", reconnects: 1 }),
  });
  await gone.sendMessage({ text: "hello" });
  expect(gone.status).toBe("error");
});
