/** Tests the built files of kit/client, unchanged, in a browser, against a server of another origin. */
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { repositoryRoot } from "../../scripts/files.ts";
import type * as Client from "../../src/client/index.ts";
import { type ServedService, serveService } from "../../src/server/testing/serve-service.ts";
import { openBrowser } from "./open-browser.ts";

/** The address and the key with which a page connects. */
interface Place {
  readonly baseUrl: string;
  readonly apiKey: string;
}

declare global {
  // The page's script puts it there.
  var kitClient: typeof Client;
}

const apiKey = "key~of/some+signs?";
let pages: Server;
let served: ServedService;
let browser: Browser | undefined;
let reason = "";
let page: Page;
let place: Place;

beforeAll(async () => {
  pages = createServer(async ({ url = "/" }, response) => {
    if (url === "/") {
      const script = 'import * as kit from "/client/index.js"; globalThis.kitClient = kit;';
      response.setHeader("content-type", "text/html");
      response.end(`<!doctype html><title>client</title><script type="module">${script}</script>`);
      return;
    }
    const code = await readFile(join(repositoryRoot, "dist", new URL(url, "http://page").pathname)).catch(
      () => undefined,
    );
    response.writeHead(code === undefined ? 404 : 200, { "content-type": "text/javascript" });
    response.end(code);
  });
  pages.listen(0, "127.0.0.1");
  await once(pages, "listening");
  served = await serveService({ access: { apiKeys: [apiKey], allowedOrigins: [originOf(pages)] } });
  place = { baseUrl: served.url, apiKey };
  try {
    browser = await openBrowser();
    page = await browser.newPage();
    await page.goto(originOf(pages));
    await page.waitForFunction(() => globalThis.kitClient !== undefined);
  } catch (error) {
    reason = String(error).split("\n", 1)[0] ?? "";
  }
});
afterAll(async () => {
  await browser?.close();
  await served.close();
  pages.close();
  pages.closeAllConnections();
});
beforeEach((context) => {
  if (browser === undefined) context.skip(`No browser starts here: ${reason}`);
});

function originOf(server: Server): string {
  const address = server.address();
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
}

test("a browser reads prompts, streams and errors", async () => {
  const seen = await page.evaluate(async (options: Place) => {
    const client = new globalThis.kitClient.KitClient(options);
    const stream = client.agents.stream("echo", { id: "page", message: "one two three" });
    const types: string[] = [];
    let text = "";
    for await (const event of stream) {
      types.push(event.type);
      if (event.type === "text_delta") text += event.text;
    }
    const refused = await new globalThis.kitClient.KitClient({ ...options, apiKey: "wrong" }).agents
      .list()
      .catch((error: unknown) => error);
    return {
      said: text,
      types,
      text: (await stream.result()).text,
      health: (await client.health()).ok,
      code: refused instanceof globalThis.kitClient.KitError ? refused.code : String(refused),
    };
  }, place);
  expect(seen).toMatchObject({
    said: "one two three",
    text: "one two three",
    health: true,
    code: "unauthorized",
  });
  expect(seen.types.at(0)).toBe("operation_start");
});

test("headers of the application reach the server", async () => {
  const agents = await page.evaluate(async (options: Place) => {
    const headers = { "X-Tenant": "books", "X-Trace": "7" };
    return await new globalThis.kitClient.KitClient({ ...options, headers }).agents.list();
  }, place);
  expect(agents).toContainEqual(expect.objectContaining({ name: "echo" }));
});

test("a path as the address is relative to the page's server", async () => {
  const requests = await page.evaluate(async () => {
    const urls: string[] = [];
    const client = new globalThis.kitClient.KitClient({
      baseUrl: "/kit/",
      fetch: async (url) => {
        urls.push(String(url));
        return new Response('{"ok":true}');
      },
    });
    await client.health();
    return urls;
  });
  expect(requests).toEqual([`${originOf(pages)}/kit/health`]);
});

test("events of an instance resume after the last event that was read, and a reader can stop early", async () => {
  const indexes = await page.evaluate(async (options: Place) => {
    const client = new globalThis.kitClient.KitClient(options);
    await client.agents.dispatch("echo", { id: "events", input: "hello there" });
    const all: number[] = [];
    const read = async (count: number): Promise<void> => {
      const after = all.at(-1);
      for await (const { index } of client.agents.events("echo", {
        id: "events",
        ...(after ? { after } : {}),
      })) {
        all.push(index);
        if (--count === 0) return;
      }
    };
    await read(2);
    await read(3);
    return all;
  }, place);
  // The log may already have joined the deltas of a finished turn.
  expect(indexes.slice(0, 2)).toEqual([1, 2]);
  expect(indexes).toHaveLength(5);
  expect(indexes).toEqual([...new Set(indexes)].sort((left, right) => left - right));
});

test("a WebSocket sends the key as a subprotocol", async () => {
  const seen = await page.evaluate(async (options: Place) => {
    const client = new globalThis.kitClient.KitClient(options);
    const connection = await client.agents.connect("echo", { id: "socket" });
    await connection.ping();
    const texts = await Promise.all(
      ["first", "second"].map(async (message) => (await connection.prompt(message).result()).text),
    );
    connection.close();
    const refused = await new globalThis.kitClient.KitClient({ ...options, apiKey: "wrong" }).agents
      .connect("echo", { id: "1" })
      .catch((error: unknown) => error);
    const workflow = await client.workflows.connect("talking");
    const run = await workflow.invoke({ lines: 2 }).result();
    return {
      texts,
      result: run.result,
      code: refused instanceof globalThis.kitClient.KitError ? refused.code : "",
    };
  }, place);
  expect(seen).toEqual({ texts: ["first", "second"], result: "done", code: "unauthorized" });
});
