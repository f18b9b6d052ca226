import { randomUUID } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import { loadConfig } from "../../app/config/load-config.ts";
import { openProjectService } from "../../app/service/open-project-service.ts";
import { changedCart } from "../../app/verify/testing/changed-cart.ts";
import { runsNow } from "../../app/verify/testing/runs-now.ts";
import { withoutIsolation } from "../../app/verify/testing/without-isolation.ts";
import { startKit } from "../../cli/testing/run-kit.ts";
import { openProject } from "../../project/open-project.ts";
import { wallTest } from "../../sandboxes/host/wall/walled.suite.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { createServer, type ServerOptions } from "../create-server.ts";

interface Served {
  readonly url: string;
  readonly write: (path: string, text: string) => Promise<void>;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into whatever was sent.
  send(path: string, body?: object): Promise<{ readonly status: number; readonly body: any }>;
}

/** Serves a repository with the work for `cart#1.1` in its work tree. */
async function serveCart({
  readOnly = false,
  ...options
}: Pick<ServerOptions, "access" | "authorize"> & { readonly readOnly?: boolean } = {}): Promise<Served> {
  const closing = new AsyncDisposableStack();
  onTestFinished(() => closing.disposeAsync());
  const cart = closing.use(await changedCart());
  const loaded = await loadConfig({ cwd: cart.root, environment: {} });
  const project = await openProject({
    ...{ root: cart.root, config: loaded.config, readOnly },
    indexFile: ":memory:",
  });
  closing.defer(() => project.close());
  const service = await openProjectService({
    ...{ project, loaded },
    engine: "memory",
    keepsEvents: true,
    store: new InMemorySessionStore(),
  });
  closing.defer(() => service.close({ timeoutMs: 0 }));
  const server = createServer({ ...options, project, service });
  closing.defer(() => server.close());
  const { url } = await server.listen({ port: 0 });
  return {
    url,
    write: cart.write,
    async send(path, body) {
      const reply = await fetch(new URL(path, url), {
        method: body === undefined ? "GET" : "POST",
        headers: { "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: reply.status, body: await reply.json() };
    },
  };
}

const start = "/workflows/kit.verify";

/** Whether a server accepts a WebSocket for a verdict. */
async function opens(url: string): Promise<boolean> {
  const socket = new WebSocket(new URL(start, url.replace(/^http/, "ws")), ["kit"]);
  return await new Promise((resolve) => {
    socket.addEventListener("error", () => resolve(false));
    socket.addEventListener("open", () => {
      socket.close();
      resolve(true);
    });
  });
}

wallTest("a verdict is the result of a run, whose events show which tests run", async () => {
  const { send } = await serveCart();
  const { status, body } = await send(`${start}?wait=result`, { feature: "cart", task: "1" });
  expect({ status, ...body }).toMatchObject({
    status: "completed",
    result: { end: "closed", isolated: true, criteria: [{ id: "cart#1.1" }], runner: "node --test" },
  });
  const { events } = (await send(`/runs/${body.run_id}/events`)).body;
  const logs: readonly { readonly message: string; readonly data: { readonly verify: object } }[] =
    events.filter(({ type }: { readonly type: string }) => type === "log");
  expect(logs.map(({ data }) => data.verify)).toEqual(
    ["base", "head", "old_tests", "again", "old_code", "respaced", "faults"].map((step) => ({ step })),
  );
  expect(logs[0]?.message).toBe("Running tests: before the change");
  expect((await send("/workflows")).body).toEqual({ workflows: [] });
  expect((await send("/runs?workflow=kit.verify")).body.runs).toMatchObject([
    { run_id: body.run_id, status: "completed", payload: { feature: "cart", task: "1" } },
  ]);
});

wallTest("a wrong question starts no run, and its answer says what to do", async () => {
  const { send } = await serveCart();
  const wrong: readonly (readonly [body: object, message: string])[] = [
    [
      { feature: "carts" },
      'No feature "carts" has acceptance criteria. kit specs coverage lists the features.',
    ],
    [{ task: "1" }, 'No task "1" was found. Name its feature, too'],
    [
      { criteria: ["cart#9.9"] },
      'No spec has the criterion "cart#9.9". kit specs coverage --all lists them.',
    ],
    [{ since: "nowhere" }, "nowhere"],
    [{ since: "--output=/tmp/x" }, "--output=/tmp/x"],
    [{ features: "cart" }, 'The payload is not what the workflow "kit.verify" accepts.'],
    [{ criteria: [] }, 'The payload is not what the workflow "kit.verify" accepts.'],
  ];
  for (const [question, message] of wrong) {
    const { status, body } = await send(start, question);
    expect([question, status, body.error.type]).toEqual([question, 400, "invalid_request"]);
    expect(body.error.message).toContain(message);
  }
  expect((await send("/runs")).body.runs).toEqual([]);
});

test("starting a verdict needs the action project.verify, and no other", async () => {
  const others = await serveCart({ authorize: ({ action }) => action !== "project.verify" });
  expect(await others.send(start, {})).toMatchObject({
    status: 403,
    body: { error: { message: expect.stringContaining("project.verify") } },
  });
  const asked: unknown[] = [];
  const only = await serveCart({
    authorize: ({ action, workflow }) => {
      asked.push([action, workflow]);
      return action === "project.verify";
    },
  });
  expect(await only.send(start, { feature: "carts" })).not.toMatchObject({
    body: { error: { message: expect.stringContaining("server.authorize") } },
  });
  expect(asked).toEqual([["project.verify", "kit.verify"]]);
  expect(await opens(others.url)).toBe(false);
  expect(await opens(only.url)).toBe(true);
  expect(asked.slice(1)).toEqual([["project.verify", "kit.verify"]]);
});

test("a read-only project gives no verdict", async () => {
  const { send } = await serveCart({ readOnly: true });
  expect(await send(start, {})).toMatchObject({
    status: 403,
    body: { error: { type: "forbidden", message: expect.stringContaining("The project is read-only here") } },
  });
  expect((await send("/runs")).body.runs).toEqual([]);
});

test("a system without isolation gives no verdict", async () => {
  await using cart = await changedCart();
  const child = startKit(["start", "--port", "0"], { cwd: cart.root, env: withoutIsolation });
  const ended = new Promise((resolve) => child.once("close", resolve));
  let said = "";
  for (const output of [child.stdout, child.stderr])
    output.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
  try {
    await expect.poll(() => said).toMatch(/http:\/\/127\.0\.0\.1:\d+/);
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(said)?.[0];
    const reply = await fetch(`${url}${start}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    expect(reply.status).toBe(403);
    expect(await reply.json()).toMatchObject({
      error: {
        type: "forbidden",
        message: expect.stringContaining("kit cannot isolate commands on freebsd."),
      },
    });
  } finally {
    child.kill("SIGTERM");
    await ended;
  }
});

wallTest("cancelling the run ends its tests", async () => {
  const { send, write } = await serveCart();
  const name = `endless-${randomUUID()}.test.mjs`;
  await write(
    name,
    'import { test } from "node:test";\ntest("never ends", () => new Promise(() => setInterval(() => {}, 1000)));\n',
  );
  const { status, body } = await send(start, {});
  expect(status).toBe(202);
  await expect.poll(() => runsNow(name), { timeout: 30_000 }).toBe(true);
  expect((await send(`/runs/${body.run_id}/cancel`, {})).body).toMatchObject({ cancelled: true });
  await expect.poll(() => runsNow(name), { timeout: 10_000 }).toBe(false);
  expect((await send(`/runs/${body.run_id}`)).body).toMatchObject({ status: "cancelled" });
});
