/** The page with `useChat`, and a proxy in front of a server, whose connections a test can break. */
import { once } from "node:events";
import { createServer, request } from "node:http";
import type { Socket } from "node:net";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { build } from "vite";
import { expect } from "vitest";
import { repositoryRoot } from "../../../scripts/files.ts";

export interface ChatFront {
  /** Sends what follows to another server; its address is `http://127.0.0.1:<port>`. */
  serveFrom(url: string): void;
  /** Breaks all connections of the page. */
  cut(): void;
  /** Opens a new chat of an agent, in a page of its own. */
  open(browser: Browser, agent?: string): Promise<Page>;
  /** The number of the newest chat: its session is `c<number>`. */
  readonly chats: number;
  close(): void;
}

export async function openChatFront(url: string): Promise<ChatFront> {
  const script = await bundle();
  const sockets = new Set<Socket>();
  let server = url;
  let chats = 0;
  const front = createServer((incoming, reply) => {
    const { url: path = "/", method, headers } = incoming;
    if (path.startsWith("/page")) {
      reply.writeHead(200, { "content-type": "text/html" });
      return reply.end(
        '<!doctype html><div id="root"></div><script type="module" src="/script.js"></script>',
      );
    }
    if (path === "/script.js") {
      reply.writeHead(200, { "content-type": "text/javascript" });
      return reply.end(script);
    }
    const onward = request(
      server + path,
      { method, headers: { ...headers, host: new URL(server).host, origin: server } },
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
  const address = front.address();
  const own = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
  return {
    get chats() {
      return chats;
    },
    serveFrom(other) {
      server = other;
    },
    cut() {
      for (const socket of sockets) socket.destroy();
    },
    async open(browser, agent = "echo") {
      const page = await browser.newPage();
      chats += 1;
      await page.goto(`${own}/page?agent=${agent}&chat=c${chats}`);
      await page.waitForSelector("#status");
      return page;
    },
    close() {
      front.close();
      front.closeAllConnections();
    },
  };
}

async function bundle(): Promise<string> {
  const outcome = await build({
    configFile: false,
    root: import.meta.dirname,
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

export async function sendText(page: Page, text: string): Promise<void> {
  await page.fill("input", text);
  await page.press("input", "Enter");
}

/** The texts of the agent's messages. */
export function answers(page: Page): Promise<string[]> {
  return page.locator(".assistant").allTextContents();
}

/** Waits until the newest answer has a text. */
export async function shows(page: Page, text: string): Promise<void> {
  await expect
    .poll(async () => (await answers(page).catch(() => [])).at(-1) ?? "", { timeout: 20_000 })
    .toContain(text);
}

/** The model says it word by word, for three seconds. */
export const longText = `calmly ${Array.from({ length: 60 }, (_, at) => `w${at}`).join(" ")}`;
