/** Tests a page with `useChat` of the AI SDK in a browser, in StrictMode, against a server whose connections break. */
import { once } from "node:events";
import { createServer, request, type Server } from "node:http";
import type { Socket } from "node:net";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { build } from "vite";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { repositoryRoot } from "../../scripts/files.ts";
import { type ServedService, serveService } from "../../src/server/testing/serve-service.ts";
import { openBrowser } from "./open-browser.ts";

const sockets = new Set<Socket>();
let front: Server;
let served: ServedService;
let browser: Browser | undefined;
let reason = "";
let chats = 0;

beforeAll(async () => {
  const script = await bundle();
  served = await serveService();
  front = createServer((incoming, reply) => {
    const { url = "/", method, headers } = incoming;
    if (url.startsWith("/page")) {
      reply.writeHead(200, { "content-type": "text/html" });
      return reply.end(
        '<!doctype html><div id="root"></div><script type="module" src="/script.js"></script>',
      );
    }
    if (url === "/script.js") {
      reply.writeHead(200, { "content-type": "text/javascript" });
      return reply.end(script);
    }
    const onward = request(
      served.url + url,
      { method, headers: { ...headers, host: `127.0.0.1:${served.port}`, origin: served.url } },
      (answer) => {
        reply.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.on("error", () => reply.destroy()).pipe(reply);
      },
    );
    incoming.pipe(onward);
    reply.on("close", () => onward.destroy());
    onward.on("error", () => reply.destroy());
  });
  front.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket)).on("error", () => undefined);
  });
  front.listen(0, "127.0.0.1");
  await once(front, "listening");
  try {
    browser = await openBrowser();
  } catch (error) {
    reason = String(error).split("\n", 1)[0] ?? "";
  }
}, 120_000);
afterAll(async () => {
  await browser?.close();
  front.close();
  front.closeAllConnections();
  await served.close();
});
beforeEach((context) => {
  if (browser === undefined) context.skip(`No browser starts here: ${reason}`);
});

async function bundle(): Promise<string> {
  const outcome = await build({
    configFile: false,
    root: join(import.meta.dirname, "chat-page"),
    logLevel: "silent",
    define: { "process.env.NODE_ENV": '"development"' },
    resolve: { alias: { "kit/client": join(repositoryRoot, "src/client/index.ts") } },
    build: {
      write: false,
      minify: false,
      target: "es2023",
      lib: { entry: "page.jsx", formats: ["es"], fileName: "page" },
    },
  });
  const [first] = Array.isArray(outcome) ? outcome : [outcome];
  const output = first !== undefined && "output" in first ? first.output : [];
  return output.map((file) => ("code" in file ? file.code : "")).join("");
}

async function openChat(agent = "echo"): Promise<Page> {
  const page = await (browser as Browser).newPage();
  const address = front.address();
  chats += 1;
  await page.goto(
    `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/page?agent=${agent}&chat=c${chats}`,
  );
  await page.waitForSelector("#status");
  return page;
}

async function sendText(page: Page, text: string): Promise<void> {
  await page.fill("input", text);
  await page.press("input", "Enter");
}

const answers = (page: Page): Promise<string[]> => page.locator(".assistant").allTextContents();
const shows = (page: Page, text: string) =>
  expect
    .poll(async () => (await answers(page).catch(() => [])).at(-1) ?? "", { timeout: 20_000 })
    .toContain(text);
const newest = async (agent = "echo") =>
  (await served.send(`/agents/${agent}/page/operations?session=c${chats}&limit=1`)).body.operations[0];
const longText = `calmly ${Array.from({ length: 60 }, (_, at) => `w${at}`).join(" ")}`;

test("a page that is reloaded and cut off while it is answered shows each word once", async () => {
  const page = await openChat();
  await sendText(page, longText);
  await shows(page, "w5 ");
  await page.reload();
  await shows(page, "w15 ");
  for (const word of ["w20 ", "w30 "]) {
    await shows(page, word);
    for (const socket of sockets) socket.destroy();
  }
  await expect.poll(() => page.textContent("#status"), { timeout: 20_000 }).toBe("ready");
  expect(await answers(page)).toEqual([longText]);
  expect(await page.locator(".user").count()).toBe(1);
  expect(await page.locator("#error").count()).toBe(0);
  await page.close();
});

test("an approval waits over a reload; a denied call never runs", async () => {
  const page = await openChat("careful");
  await sendText(page, "pay 5");
  await page.waitForSelector(".approve");
  await page.reload();
  await page.click(".approve");
  await shows(page, "It is done.");
  await sendText(page, "pay 6");
  await page.click(".deny");
  await expect.poll(async () => (await newest("careful")).status).toBe("completed");
  const { body } = await served.send(`/agents/careful/page/ui/c${chats}/messages`);
  const states = body.messages.flatMap(({ parts }: { parts: { state?: string; type: string }[] }) =>
    parts.filter(({ type }) => type === "tool-pay").map(({ state }) => state),
  );
  expect(states).toEqual(["output-available", "output-denied"]);
  await page.close();
});

test("leaving the page stops nothing, and the stop after a reload stops the agent", async () => {
  const page = await openChat();
  await sendText(page, "slow");
  await shows(page, "3 ");
  await page.click("#leave");
  await page.waitForSelector("#status", { state: "detached" });
  expect((await newest()).status).toBe("working");
  await page.reload();
  await shows(page, "8 ");
  await page.click("#stop");
  await expect.poll(async () => (await newest()).status).toBe("aborted");
  await sendText(page, "the next");
  await shows(page, "the next");
  await page.close();
});

test("a call of the page's tool is answered after a reload, and messages are edited and asked again", async () => {
  const page = await openChat();
  await sendText(page, "call locate {}");
  await page.waitForSelector(".locate");
  await page.reload();
  await page.click(".locate");
  await shows(page, "OsloIt is done.");
  // The model uses the id of its call again.
  await sendText(page, "call locate {}");
  await page.click(".locate");
  await expect.poll(() => answers(page)).toEqual(["OsloIt is done.", "OsloIt is done."]);
  await sendText(page, "second");
  await shows(page, "second");
  const { operation_id } = await newest();
  await page.click("#again");
  await expect.poll(async () => (await newest()).rewound_before).toBe(operation_id);
  await expect.poll(() => page.textContent("#status"), { timeout: 20_000 }).toBe("ready");
  expect(await answers(page)).toEqual(["OsloIt is done.", "OsloIt is done.", "second"]);
  await page.click("#edit");
  await expect.poll(() => answers(page), { timeout: 20_000 }).toEqual(["edited words"]);
  await page.reload();
  await shows(page, "edited words");
  expect(await page.locator(".user").allTextContents()).toEqual(["edited words"]);
  expect(await page.locator("#error").count()).toBe(0);
  await page.close();
});
