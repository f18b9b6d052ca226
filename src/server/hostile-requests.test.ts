import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { serveForTests } from "./testing/serve-for-tests.ts";

const operations: { readonly method: string; readonly path: string; readonly fields: readonly string[] }[] =
  [];

interface Described {
  readonly parameters: readonly { readonly in: string; readonly name: string }[];
  readonly requestBody?: { readonly content: Record<string, { readonly schema: { properties?: object } }> };
}

const served = serveForTests({ limits: { bodyBytes: 20_000, jsonDepth: 16 } });
beforeAll(async () => {
  const { paths } = (await served.send("/openapi.json")).body;
  for (const [path, methods] of Object.entries<Record<string, Described>>(paths)) {
    for (const [method, { parameters, requestBody }] of Object.entries(methods)) {
      const body = requestBody?.content["application/json"]?.schema.properties ?? {};
      const query = parameters.filter((one) => one.in === "query").map(({ name }) => name);
      operations.push({ method: method.toUpperCase(), path, fields: [...Object.keys(body), ...query] });
    }
  }
});

const names = ["echo", "careful", "hidden", "strict", "talking", "1", "__proto__", "constructor", "default"];
const segment = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...names) },
  fc.string({ unit: "binary", maxLength: 140 }).map((text) => encodeURIComponent(text.toWellFormed())),
  fc.stringMatching(/^[%0-9a-fA-F.;:@]{1,12}$/),
);
const value = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom("echo", "strict", "hello", "default", "failed", "result", 1, -1, 1e21, "\ud800", "a\0b"),
);

function record(fields: readonly string[]): fc.Arbitrary<Record<string, unknown>> {
  const keys = fc.constantFrom(...fields, "__proto__", "constructor", "payload", "input", "");
  return fc.array(fc.tuple(keys, value), { maxLength: 4 }).map((entries) => Object.fromEntries(entries));
}

const request = fc.nat().chain((choice) => {
  const { method, path, fields } = operations[choice % operations.length] ?? {
    method: "GET",
    path: "/",
    fields: [],
  };
  return fc.record({
    method: fc.oneof({ weight: 8, arbitrary: fc.constant(method) }, fc.constantFrom("GET", "POST", "PUT")),
    path: fc.array(segment, { minLength: 3, maxLength: 3 }).map((parts) => {
      const remaining = [...parts];
      return path.replace(/\{\w+\}/g, () => remaining.pop() ?? "1");
    }),
    query: fc.oneof(
      { weight: 4, arbitrary: fc.constant("") },
      fc.string({ maxLength: 20 }).map((text) => text.replaceAll("#", "")),
      record(fields).map((all) => {
        const query = new URLSearchParams();
        for (const [name, text] of Object.entries(all)) query.append(name, String(text));
        return String(query);
      }),
    ),
    body: fc.oneof(
      { weight: 6, arbitrary: record(fields).map((body) => JSON.stringify(body)) },
      fc.string({ maxLength: 40 }),
      value.map((any) => JSON.stringify(any)),
    ),
    type: fc.oneof(
      { weight: 8, arbitrary: fc.constant("application/json") },
      fc.string({ unit: "grapheme-ascii", maxLength: 20 }),
    ),
    headers: fc.dictionary(
      fc.constantFrom(
        "accept",
        "idempotency-key",
        "last-event-id",
        "origin",
        "authorization",
        "content-encoding",
      ),
      fc.string({ unit: "grapheme-ascii", maxLength: 30 }),
      { maxKeys: 2 },
    ),
  });
});

test("every reply is JSON or a stream, an error has the envelope, and nothing breaks", async () => {
  await fc.assert(
    fc.asyncProperty(request, async ({ method, path, query, body, type, headers }) => {
      const gone = new AbortController();
      const sent = new Request(
        encodeURI(`http://localhost${path}`).replaceAll("%25", "%") + (query && `?${query}`),
        {
          method,
          headers: { ...headers, "content-type": type },
          signal: gone.signal,
          ...(method === "GET" ? {} : { body }),
        },
      );
      const reply = await served.server.app.fetch(sent);
      expect(served.errors.map(String)).toEqual([]);
      if (reply.headers.get("content-type")?.startsWith("text/event-stream")) {
        await reply.body?.cancel();
        return gone.abort();
      }
      const text = await reply.text();
      expect(text).not.toContain(served.root);
      if (reply.status < 400) return;
      expect(reply.status).not.toBe(500);
      if (reply.headers.get("content-type")?.startsWith("text/plain")) {
        // The AI SDK shows the body of a refusal as it is.
        expect([/\/(?:ag)?ui/.test(path), text !== ""]).toEqual([true, true]);
        return;
      }
      const { jsonrpc, error } = JSON.parse(text);
      if (jsonrpc !== undefined) {
        expect([/mcp|a2a/.test(path), error]).toEqual([true, { ...error, code: expect.any(Number) }]);
        return;
      }
      if (path.startsWith("/v1/") && "param" in error) return;
      expect(error).toMatchObject({
        type: expect.stringMatching(/^[a-z_]+$/),
        message: expect.any(String),
        details: expect.any(String),
      });
    }),
    { numRuns: 500 },
  );
});
