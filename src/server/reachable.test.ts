import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { serveForTest } from "./testing/serve-for-tests.ts";
import { type ServedService, serveService } from "./testing/serve-service.ts";
import { openSocket } from "./testing/socket-client.ts";

const declaration = "export const triggers = { webhook: true }";
const message = { message: "x" };

/** Every door to an agent: what is asked of it. */
const doors: readonly (readonly [method: string, path: string, body?: unknown])[] = [
  ["POST", "", message],
  ["POST", "/dispatch", { input: "x" }],
  ["GET", "/events"],
  ["GET", "/history"],
  ["POST", "/abort", {}],
  ["DELETE", ""],
  ["GET", "/approvals"],
  ["POST", "/approvals/none", { approved: true }],
];

async function typesOf(served: ServedService, agent: string): Promise<readonly string[]> {
  const replies = doors.map(async ([method, path, body]) => {
    const reply = await served.stream(`/agents/${agent}/1${path}`, { method, body });
    if (reply.status === 200) await reply.body?.cancel();
    return reply.status === 404 ? (JSON.parse(await reply.text()).error.type as string) : "open";
  });
  return [...new Set(await Promise.all(replies))];
}

async function socketStatus(served: ServedService, path: string): Promise<unknown> {
  try {
    const socket = await openSocket(`${served.url}${path}`);
    socket.socket.close();
    return 101;
  } catch (error) {
    return Object(error).status;
  }
}

describe("an agent without a trigger is reached over no route", () => {
  let served: ServedService;
  beforeAll(async () => {
    served = await serveService({ files: { "src/agents/default.ts": "export default 1;\n" } });
  });
  afterAll(() => served.close());

  test("each route answers 404 with what to declare, and no WebSocket is opened", async () => {
    expect(await typesOf(served, "hidden")).toEqual(["agent_not_webhook"]);
    const { body } = await served.send("/agents/hidden/1", { body: message });
    expect(body.error.details).toContain(declaration);
    expect(body.error.details).toContain('server.expose = "all"');
    expect(JSON.stringify(body)).not.toContain("src/agents/hidden.ts");
    expect(await socketStatus(served, "/agents/hidden/1")).toBe(404);
  });

  test("another spelling of its name does not make such an agent reachable", async () => {
    for (const name of ["Hidden", "hidden%20", "%68idden"]) {
      const { status } = await served.send(`/agents/${name}/1`, { body: message });
      expect([name, status]).toEqual([name, 404]);
    }
  });

  test("such an agent is listed as unreachable, and the start page does not name it", async () => {
    const { body } = await served.send("/agents");
    expect(body.agents).toContainEqual({
      name: "hidden",
      path: "src/agents/hidden.ts",
      triggers: { webhook: false },
    });
    const overview = await served.send("/", { headers: { accept: "application/json" } });
    expect(overview.body.agents).toEqual(["careful", "echo"]);
  });
});

test("the default agent without a file is not served, but one that declares a trigger is", async () => {
  const served = await serveForTest({ files: { "src/agents/default.ts": null } });
  for (const path of ["/prompt/s", "/prompt/s/events", "/agents/default/1"]) {
    const { status, body } = await served.send(path, { body: message });
    expect([path, status, body.error.type]).toEqual([path, 404, "agent_not_webhook"]);
    expect(`${body.error.message} ${body.error.details}`).toMatch(/src\/agents\/default\.ts.*webhook: true/);
  }
  expect(await socketStatus(served, "/agents/default/1")).toBe(404);
});

test("with expose all every agent is served, including the default one, and none is marked", async () => {
  const served = await serveForTest({ expose: "all", files: { "src/agents/default.ts": null } });
  expect(await typesOf(served, "hidden")).toEqual(["open", "not_found"]);
  expect((await served.send("/prompt/s", { body: message })).status).toBe(200);
  expect(JSON.stringify((await served.send("/agents")).body)).not.toContain("dev_only");
  expect(await socketStatus(served, "/agents/hidden/1")).toBe(101);
});

describe("kit dev", () => {
  test("serves every agent on loopback, marks those that kit start would not serve, and suggests none of them", async () => {
    const files = {
      "src/agents/careful.ts": null,
      "src/agents/default.ts": null,
      "src/agents/echo.ts": null,
    };
    const served = await serveForTest({ dev: true, files });
    expect((await served.send("/agents/hidden/1", { body: message })).status).toBe(200);
    const { body } = await served.send("/agents");
    expect(body.agents).toEqual([
      { name: "hidden", path: "src/agents/hidden.ts", triggers: { webhook: false }, dev_only: true },
    ]);
    const page = await (await fetch(served.url)).text();
    expect(page).not.toContain("Ask an agent");
  });

  test("answers an unknown name with the names that callers can use, and kit start does not", async () => {
    const nameless = async (options: Parameters<typeof serveService>[0]) => {
      const served = await serveService(options);
      try {
        const agent = await served.send("/agents/ecko/1", { body: message });
        const workflow = await served.send("/workflows/strikt", { body: {} });
        return [agent.body.error.dev?.hint, workflow.body.error.dev?.hint];
      } finally {
        await served.close();
      }
    };
    const workflows = expect.stringMatching(/^The workflows are: .*strict/);
    expect(await nameless({ dev: true })).toEqual([
      "The agents are: careful, default, echo, hidden.",
      workflows,
    ]);
    const onPublicAddress = { dev: true, host: "0.0.0.0", access: { insecure: true } } as const;
    expect(await nameless(onPublicAddress)).toEqual(["The agents are: careful, default, echo.", workflows]);
    expect(await nameless({})).toEqual([undefined, undefined]);
  });

  test("on a public address serves only agents that declare a trigger", async () => {
    const served = await serveForTest({ dev: true, host: "0.0.0.0", access: { insecure: true } });
    expect((await served.send("/agents/hidden/1", { body: message })).body.error.type).toBe(
      "agent_not_webhook",
    );
    expect((await served.send("/agents/echo/1", { body: message })).status).toBe(200);
    expect(JSON.stringify((await served.send("/agents")).body)).not.toContain("dev_only");
  });
});

test("an open connection follows the agent's file: once its trigger is removed, prompts are refused", async () => {
  const served = await serveForTest();
  const socket = await openSocket(`${served.url}/agents/echo/1`);
  await socket.next();
  const withdrawn = served.service.app
    .agents()
    .map((agent) => (agent.name === "echo" ? { ...agent, triggers: { webhook: false } } : agent));
  Object.assign(served.service.app, { agents: () => withdrawn });
  socket.send({ type: "prompt", request_id: "r", ...message });
  expect(await socket.next()).toMatchObject({
    type: "error",
    request_id: "r",
    error: { type: "agent_not_webhook" },
  });
  socket.socket.close();
});
