import { createHmac } from "node:crypto";
import { expect, test } from "vitest";
import { createSecretMask } from "../agents/secrets.ts";
import type { RequestEntry } from "./answer-request.ts";
import { createServer } from "./create-server.ts";
import { modernRequest } from "./testing/mcp-client.ts";
import { serveForTests } from "./testing/serve-for-tests.ts";
import { webhookSecrets } from "./testing/service-files.ts";
import { openSocket } from "./testing/socket-client.ts";
import { temporaryProject } from "./testing/temporary-project.ts";

const key = "sk-live-4f0c9a7de1b24c55";
const shapes = [key, encodeURIComponent(key), btoa(key), `the key is ${key}.`] as const;

/** Throws an error that any caller is told, as code of a project may, with the key in each part of it. */
const refusal = `throw Object.assign(new (class KitError extends Error {})("No: ${key}"), {
  [Symbol.for("kit.error")]: true, code: "invalid_request", hint: "Use ${key}.",
  meta: { issues: [{ path: "${key}", message: "${key}" }], ["${key}"]: "${btoa(key)}" },
});`;

const files = {
  "CLAUDE.md": `# Rules\n\n## Money\n\nThe key is ${key}.\n`,
  "src/workflows/telling.ts": `export async function run(ctx) {
  ctx.log.info("The key is ${key}.");
  return { told: [${JSON.stringify(shapes)}, ctx.payload], ["${key}"]: 1 };
}
`,
  "src/workflows/described.ts": `export const payload = { type: "object", description: "Needs ${key}." };
export const run = () => 1;
`,
  "src/workflows/refusing.ts": `export async function run() { ${refusal} }\n`,
  "src/webhooks/telling.ts": `export default {
  kind: "kit.webhook", scheme: "github", secret: () => "${webhookSecrets.github}",
  handle: () => ({ said: "${key}" }),
};
`,
};

const entries: RequestEntry[] = [];
const served = serveForTests({ files, env: { STRIPE_KEY: key }, onRequest: (entry) => entries.push(entry) });

function expectMasked(text: string): void {
  for (const shape of [key, btoa(key), key.slice(8)]) expect(text).not.toContain(shape);
  expect(text).toContain("[secret]");
}

test.each([
  ["a result", "/workflows/telling?wait=result", { payload: { again: key } }],
  ["a refusal", "/workflows/refusing?wait=result", {}],
  ["a prompt", "/agents/echo/1", { message: `Say ${key}` }],
  ["an error about what was sent", "/agents/echo/1", { [key]: 1 }],
])("%s contains no key, as JSON or as a stream", async (_, path, body) => {
  expectMasked(JSON.stringify((await served.send(path, { body })).body));
  expectMasked(await (await served.stream(path, { body })).text());
});

test("no record, event or guideline in a reply contains a secret", async () => {
  const { body } = await served.send("/workflows/telling", { body: { payload: { again: key } } });
  await served.service.engine.awaitRun(body.run_id);
  for (const path of [`/runs/${body.run_id}`, `/runs/${body.run_id}/events?types=log`, "/api/guidelines"])
    expectMasked(JSON.stringify((await served.send(path)).body));
});

test("the list of MCP tools contains no secret, however often it is asked for", async () => {
  for (let count = 0; count < 2; count += 1) {
    const { body } = await served.send("/mcp", modernRequest("tools/list"));
    expectMasked(JSON.stringify(body));
  }
});

test("the reply of a webhook contains no secret", async () => {
  const body = "{}";
  const signature = createHmac("sha256", webhookSecrets.github).update(body).digest("hex");
  const headers = { "content-type": "application/json", "x-hub-signature-256": `sha256=${signature}` };
  const reply = await fetch(`${served.url}/webhooks/telling`, { method: "POST", headers, body });
  expectMasked(await reply.text());
});

test("no frame of a WebSocket contains a secret", async () => {
  const client = await openSocket(`${served.url}/workflows/telling`);
  client.send({ type: "invoke", request_id: "one", payload: { again: key } });
  expectMasked(JSON.stringify(await client.until("result")));
  client.socket.close();
});

test("a log entry and its reply contain no secret", async () => {
  const { body } = await served.send(`/agents/${encodeURIComponent(key)}/1`, { body: { message: "Hello" } });
  expect(JSON.stringify(body)).not.toContain(key);
  await expect(openSocket(`${served.url}/agents/${key}/1`)).rejects.toThrow();
  const masked = entries.filter(({ path }) => path.includes("[secret]"));
  expect(masked.map(({ method, status }) => `${method} ${status}`)).toEqual(["POST 404", "GET 404"]);
  expect(JSON.stringify(entries)).not.toContain(key);
});

test("a server without agents masks the configured secrets", async () => {
  const shop = await temporaryProject(files);
  const { app } = createServer({ project: shop.project, mask: createSecretMask([key]) });
  expectMasked(await (await app.request("/api/guidelines")).text());
  await shop.remove();
});
