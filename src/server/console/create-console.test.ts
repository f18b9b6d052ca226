import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { testFolder } from "../../testing/test-folder.ts";
import { createConsole } from "./create-console.ts";

const folder = testFolder(afterAll);
beforeAll(async () => {
  await mkdir(join(folder, "assets"));
  const page = '<!doctype html><html><head><meta name="kit-console" content="full" /></head></html>';
  await writeFile(join(folder, "index.html"), page);
  await writeFile(join(folder, "assets/index-1.js"), "plain");
  await writeFile(join(folder, "assets/index-1.js.gz"), "compressed");
});

const ask = (path: string, headers: Record<string, string> = {}, isReadOnly = false): Promise<Response> =>
  createConsole({ isReadOnly, folder }).answer({ path, headers: new Headers(headers) });

describe("the page", () => {
  test.each([
    ["/", "console/"],
    ["/console", "console/"],
    ["/console/", "./"],
    ["/console/agents", "./"],
    ["/console/agents/echo/pr%2F1", "../../"],
    ["/console/index.html", "./"],
  ])("at %s finds its files at %s, also below a proxy's path", async (path, base) => {
    const reply = await ask(path);
    expect(reply.status).toBe(200);
    expect(await reply.text()).toContain(`<head><base href="${base}">`);
    const address = new URL(`https://proxy.example/kit${path}`);
    expect(new URL(base, address).pathname).toBe("/kit/console/");
  });

  test("is revalidated each time, and sent again only if it has changed", async () => {
    const first = await ask("/console/agents");
    expect(first.headers.get("cache-control")).toBe("no-cache");
    const etag = first.headers.get("etag") ?? "";
    const again = await ask("/console/agents", { "if-none-match": `W/"x", ${etag}` });
    expect([again.status, await again.text()]).toEqual([304, ""]);
    const policy = "content-security-policy";
    expect(again.headers.get(policy)).toBe(first.headers.get(policy));
    expect((await ask("/console/a/b", { "if-none-match": etag })).status).toBe(200);
  });

  test("tells whether it is read-only", async () => {
    expect(await (await ask("/", {}, true)).text()).toContain('content="read"');
  });

  test("runs only scripts of this server, and cannot be framed", async () => {
    const policy = (await ask("/")).headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'self'; script-src 'self';");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe-eval|script-src[^;]*unsafe/);
  });

  test("tells how to build the console if it is not built", async () => {
    const missing = createConsole({ isReadOnly: false, folder: join(folder, "nowhere") });
    const reply = await missing.answer({ path: "/", headers: new Headers() });
    expect([reply.status, await reply.text()]).toEqual([503, expect.stringContaining("npm run build")]);
  });
});

describe("a file", () => {
  test("can be cached forever, and is compressed for clients that accept that", async () => {
    const reply = await ask("/console/assets/index-1.js", { "accept-encoding": "gzip, br" });
    expect([reply.headers.get("content-encoding"), await reply.text()]).toEqual(["gzip", "compressed"]);
    expect(reply.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(reply.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    const plain = await ask("/console/assets/index-1.js");
    expect([plain.headers.get("content-encoding"), await plain.text()]).toEqual([null, "plain"]);
  });

  test.each(["/console/assets/old-2.js", "/console/assets/../../../package.json", "/console/assets/%2e%2e"])(
    "%s is not found, and no page is sent instead",
    async (path) => {
      const reply = await ask(path);
      expect([reply.status, reply.headers.get("content-type")]).toEqual([404, "text/plain; charset=utf-8"]);
    },
  );
});
