import { expect, onTestFinished, test } from "vitest";
import { KitClient } from "../../client/index.ts";
import { createConfiguredServer } from "../serve-application.ts";
import { serveForTest } from "../testing/serve-for-tests.ts";
import { serveService } from "../testing/serve-service.ts";
import { temporaryProject } from "../testing/temporary-project.ts";

test("the server route shows limits, the ids of keys and problems, but no key", async () => {
  const served = await serveService({
    access: { apiKeys: ["a-key-of-the-server-1234"] },
    files: { "src/agents/spoiled.ts": "export default 7;\n" },
  });
  onTestFinished(() => served.close());
  const client = new KitClient({ baseUrl: served.url, apiKey: "a-key-of-the-server-1234" });
  const state = await client.server();
  expect(state).toMatchObject({ console: true, expose: "declared", has_auth: false, has_authorize: false });
  expect(state.keys).toEqual([expect.stringMatching(/^key_[0-9a-f]{12}$/)]);
  expect(state.limits.body_bytes).toBe(1_048_576);
  const agents = state.findings.find(({ name }) => name === "agents");
  expect(agents).toMatchObject({ status: "error", hint: expect.stringContaining("src/agents/spoiled.ts") });
  expect(JSON.stringify(state)).not.toContain("a-key-of-the-server-1234");
  expect((await served.send("/server")).status).toBe(401);
});

test("a configuration is shown without its secrets, whatever their names, and code is named", async () => {
  const temporary = await temporaryProject({ "AGENTS.md": "# Rules\n" });
  const server = createConfiguredServer({
    project: temporary.project,
    loaded: {
      config: {
        server: {
          api_keys: ["secret-1"],
          auth: () => true,
          rate_limit: { requests: 5 },
          max_body_bytes: 5_000,
        },
        store: "postgres://kit:secret-2@db.example:5432/kit?password=secret-3",
        engine: { url: "postgres://kit:12/secret-6@db.example/kit" },
        telemetry: { endpoint: "postgres://kit:secret-7@a.example:1,b.example:2/kit?password=secret-8" },
        providers: { own: { api_key: "secret-4", base_url: "https://models.example/v1" } },
        mcp: { servers: { git: { command: "git-mcp", env: { ANYTHING: "secret-5" } } } },
      } as never,
    },
  });
  const reply = await server.app.request("/server", { headers: { authorization: "Bearer secret-1" } });
  const state = (await reply.json()) as { configuration: Record<string, Record<string, unknown>> };
  await server.close();
  await temporary.remove();
  expect(JSON.stringify(state)).not.toMatch(/secret-\d/);
  expect(state.configuration.server).toEqual({
    api_keys: ["[hidden]"],
    auth: "[code]",
    rate_limit: { requests: 5 },
    max_body_bytes: 5_000,
  });
  expect(state.configuration.store).toBe("postgres://db.example:5432/kit [hidden]");
  expect(state.configuration.engine).toEqual({ url: "postgres://db.example/kit [hidden]" });
  expect(state.configuration.telemetry).toEqual({
    endpoint: "postgres://a.example:1,b.example:2/kit [hidden]",
  });
  expect(state.configuration.providers).toEqual({
    own: { api_key: "[hidden]", base_url: "https://models.example/v1" },
  });
});

test("a caller without `server.read` is refused", async () => {
  const served = await serveForTest({ authorize: ({ action }) => action !== "server.read" });
  expect(await served.send("/server")).toMatchObject({ status: 403, body: { error: { type: "forbidden" } } });
});
