import { expect, test } from "vitest";
import { serveForTest } from "../testing/serve-for-tests.ts";
import { checkLooksOnly } from "./console-request.ts";

const apiKey = "key-of-the-console";
const html = { accept: "text/html" };
const authorization = { authorization: `Bearer ${apiKey}` };

test("the page needs no key, but its requests do", async () => {
  const { url } = await serveForTest({
    access: { apiKeys: [apiKey] },
    authorize: () => false,
    rateLimit: { requests: 4 },
  });
  for (const path of ["/", "/console", "/console/agents/echo", "/", "/console/", "/console/server"]) {
    const reply = await fetch(`${url}${path}`, { headers: html });
    expect([path, reply.headers.get("content-type")]).toEqual([path, "text/html; charset=utf-8"]);
  }
  for (const headers of [{ accept: "application/json" }, { accept: "*/*" }]) {
    expect((await fetch(url, { headers })).status).toBe(401);
  }
  expect((await fetch(`${url}/agents`, { headers: html })).status).toBe(401);
  const withName = { ...html, "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" };
  expect((await fetch(`${url}/console/`, { headers: withName })).status).toBe(403);
});

test("a path of the page accepts only GET and HEAD", async () => {
  const { send } = await serveForTest({});
  const reply = await send("/console/agents", { method: "POST", body: {} });
  expect([reply.status, reply.headers.get("allow")]).toEqual([405, "GET, HEAD, OPTIONS"]);
});

test("without a console there is no page", async () => {
  const { send, url } = await serveForTest({ console: false });
  expect((await send("/console/agents", { headers: html })).body.error.type).toBe("not_found");
  expect(await (await fetch(url, { headers: html })).json()).toMatchObject({ name: "kit" });
});

test("a read-only page cannot write; other clients still can", async () => {
  const { send, url } = await serveForTest({ console: "read", access: { apiKeys: [apiKey] } });
  const ofPage = { ...authorization, origin: url };
  const marked = { ...authorization, "sec-fetch-site": "same-origin" };
  const acts: readonly (readonly [path: string, body: unknown, method?: string])[] = [
    ["/agents/echo/1", { message: "hello" }],
    ["/agents/echo/1/dispatch", { input: "hello" }],
    ["/agents/echo/1/abort", {}],
    ["/agents/careful/1/approvals/approval_1", { approved: true }],
    ["/workflows/talking", {}],
    ["/runs/run_1/cancel", {}],
    ["/sessions/prune", { older_than_seconds: 9_999 }],
    ["/agents/echo/1", undefined, "DELETE"],
    ["/prompt/default", { message: "hello" }],
    ["/api/guidelines/convert", { guideline_id: "0000000000000000", format: "fw_b", preview: false }],
    ["/api/guidelines/sync", { preview: false }],
    ["/api/specs/results", { report: "{}" }],
  ];
  for (const headers of [ofPage, marked]) {
    for (const [path, body, method = "POST"] of acts) {
      const reply = await send(path, { headers, method, body });
      expect([path, reply.status, reply.body.error.message]).toEqual([
        path,
        403,
        expect.stringContaining('server.console is "read"'),
      ]);
    }
    for (const path of ["/agents", "/runs", "/api/specs"]) {
      expect((await send(path, { headers })).status).toBe(200);
    }
    const impact = await send("/api/specs/impact", { headers, body: { files: ["a.ts"] } });
    expect(impact.status).toBe(200);
  }
  const handshake = { method: "GET", path: "/agents/echo/1", host: new URL(url).host };
  const headers = { upgrade: "websocket", origin: url };
  expect(() => checkLooksOnly({ ...handshake, headers: new Headers(headers) })).toThrow("read-only");
  const reply = await send("/agents/echo/1", { headers: authorization, body: { message: "hello" } });
  expect(reply.body.result.text).toBe("hello");
});
