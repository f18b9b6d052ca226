import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, describe, expect, test } from "vitest";
import { collectEvents, readEventStream } from "../testing/read-event-stream.ts";
import { serveForTest, serveForTests } from "../testing/serve-for-tests.ts";

const served = serveForTests();
afterAll(() => expect(served.errors).toEqual([]));

describe("agents", () => {
  test("are listed with their files and triggers, except an agent that cannot be loaded", async () => {
    const { status, body } = await served.send("/agents");
    expect(status).toBe(200);
    expect(body).toEqual({
      agents: [
        { name: "careful", path: "src/agents/careful.ts", triggers: { webhook: true } },
        { name: "default", path: "src/agents/default.ts", triggers: { webhook: true } },
        { name: "echo", path: "src/agents/echo.ts", triggers: { webhook: true } },
        { name: "hidden", path: "src/agents/hidden.ts", triggers: { webhook: false } },
      ],
    });
  });

  test("answer a prompt, and continue its session", async () => {
    const first = await served.send("/agents/echo/a", { body: { message: "hello there" } });
    expect(first.status).toBe(200);
    expect(first.body).toEqual({
      result: {
        text: "hello there",
        usage: expect.objectContaining({ input: 3, output: 2, total_tokens: 5 }),
        model: { id: expect.any(String) },
        metadata: expect.objectContaining({ operation_id: expect.stringMatching(/^op_/) }),
      },
    });
    await served.send("/agents/echo/a", { body: { payload: { message: "again" } } });
    const { body } = await served.send("/agents/echo/a/history");
    expect(body.messages.map((one: { role: string }) => one.role)).toEqual([
      "user",
      "assistant",
      "user",
      "assistant",
    ]);
    expect(body.messages[0]).toEqual({
      role: "user",
      content: [{ type: "text", text: "hello there" }],
      timestamp: expect.any(String),
    });
  });

  test("answer as a stream of events that ends with the result", async () => {
    const reply = await served.stream("/agents/echo/b", { body: { message: "one two three" } });
    expect([reply.status, reply.headers.get("content-type")]).toEqual([
      200,
      "text/event-stream; charset=utf-8",
    ]);
    const events = await collectEvents(reply);
    const deltas = events.filter(({ event }) => event === "text_delta");
    expect(deltas.map(({ data }) => data.text)).toEqual(["one ", "two ", "three"]);
    expect(events[0]?.event).toBe("operation_start");
    expect(events.at(-1)).toEqual({
      id: undefined,
      event: "result",
      data: { result: expect.objectContaining({ text: "one two three" }) },
    });
    const ids = events.slice(0, -1).map(({ id, data }) => [Number(id), data.index]);
    expect(ids.every(([id, index]) => id === index)).toBe(true);
  });

  test("refuse an invalid prompt, with a path for each fault, as JSON even if a stream was requested", async () => {
    const image = { data: "not base64!", media_type: "image/png" };
    const wrong = { message: "", session: "../other", thinking_level: "deep", images: [image], colour: 1 };
    for (const accept of ["application/json", "text/event-stream"]) {
      const { status, headers, body } = await served.send("/agents/echo/x", {
        body: wrong,
        headers: { accept },
      });
      expect([status, headers.get("content-type")]).toEqual([400, "application/json; charset=utf-8"]);
      expect(body.error.meta.issues.map((issue: { path: string }) => issue.path).sort()).toEqual([
        "body.colour",
        "body.images.0.data",
        "body.message",
        "body.session",
        "body.thinking_level",
      ]);
    }
    const { body } = await served.send("/agents/echo/x", { body: {} });
    expect(body.error.meta.issues).toEqual([{ path: "body.message", message: "is required" }]);
    const half = "half \ud800 of a character";
    const page = { data: "PGI+", media_type: "text/html" };
    for (const [wrongField, request] of [
      ["message", { message: half }],
      ["session", { message: "x", session: half }],
      ["images.0.media_type", { message: "x", images: [page] }],
      ["images.0.data", { message: "x", images: [{ data: "", media_type: "image/png" }] }],
      ["files.0.media_type", { message: "x", files: [{ data: "PGI+", media_type: "pdf" }] }],
      ["files.0.filename", { message: "x", files: [{ ...page, filename: "../a" }] }],
      ["files.0.url", { message: "x", files: [{ url: "file:///etc/passwd", media_type: "text/plain" }] }],
    ] as const) {
      const refused = await served.send("/agents/echo/x", { body: request });
      expect(refused.body.error.meta?.issues[0].path).toBe(`body.${wrongField}`);
    }
    expect((await served.send("/agents/echo/x/dispatch", { body: { input: half } })).status).toBe(400);
    expect((await served.send("/agents/echo/x/history")).status).toBe(404);
  });

  test("accept documents with the message, and pass them to the model", async () => {
    const file = { data: "JVBERg==", media_type: "application/pdf", filename: "plan.pdf" };
    const sent = await served.send("/agents/echo/files", { body: { message: "read", files: [file] } });
    expect(sent.status).toBe(200);
    const { body } = await served.send("/agents/echo/files/history");
    expect(JSON.stringify(body)).toContain('"type":"file","media_type":"application/pdf"');
  });

  test("that do not exist, cannot be loaded or are not reachable are reported, without naming other agents", async () => {
    const cases = [
      ["no-such-agent", "agent_not_found"],
      ["__proto__", "agent_not_found"],
      ["broken", "agent_not_found"],
      ["hidden", "agent_not_webhook"],
    ] as const;
    for (const [name, type] of cases) {
      const requests = [
        [`/agents/${name}/1`, { body: { message: "hi" } }],
        [`/agents/${name}/1/dispatch`, { body: { input: "hi" } }],
        [`/agents/${name}/1/events`, {}],
        [`/agents/${name}/1/history`, {}],
        [`/agents/${name}/1/abort`, { body: {} }],
        [`/agents/${name}/1/approvals`, {}],
        [`/agents/${name}/1`, { method: "DELETE" }],
      ] as const;
      for (const [path, request] of requests) {
        const { status, body } = await served.send(path, request);
        expect([path, status, body.error.type]).toEqual([path, 404, type]);
        expect(JSON.stringify(body)).not.toMatch(/echo|careful|src\//);
      }
    }
  });

  test("report the failure of their model as a separate kind of error", async () => {
    const { status, body } = await served.send("/agents/echo/failing", { body: { message: "fail" } });
    expect([status, body.error.type]).toEqual([502, "model_error"]);
    const reply = await served.stream("/agents/echo/failing", { body: { message: "fail" } });
    const events = await collectEvents(reply);
    expect(events.at(-1)).toMatchObject({ event: "error", data: { error: { type: "model_error" } } });
  });

  test("run a repeated request with the same key once, also after its client has disconnected", async () => {
    const headers = { "idempotency-key": "order 1" };
    const gone = new AbortController();
    const reply = served.stream("/agents/echo/keyed", {
      body: { message: "hold" },
      headers,
      signal: gone.signal,
    });
    await served.echo.held(1);
    await (await reply).body?.cancel();
    gone.abort();
    const again = served.send("/agents/echo/keyed", { body: { message: "hold" }, headers });
    served.echo.release();
    expect((await again).body.result.text).toBe("hold");
    expect((await served.send("/agents/echo/keyed", { body: { message: "hold" }, headers })).body).toEqual(
      (await again).body,
    );
    const { body } = await served.send("/agents/echo/keyed/history");
    expect(body.messages).toHaveLength(2);
    const other = await served.send("/agents/echo/keyed", { body: { message: "other" }, headers });
    expect([other.status, other.body.error.type]).toEqual([409, "conflict"]);
    for (const key of ["k".repeat(129), "\u00e4", ""]) {
      const wrong = await served.send("/agents/echo/keyed", {
        body: { message: "x" },
        headers: { "idempotency-key": key },
      });
      expect([key, wrong.status, wrong.body.error.meta?.issues?.[0]?.path]).toEqual([
        key,
        400,
        "headers.idempotency-key",
      ]);
    }
  });

  test("stop working if a client without a key disconnects", async () => {
    for (const how of ["send", "stream"] as const) {
      const gone = new AbortController();
      const reply = served[how](`/agents/echo/${how}`, { body: { message: "hold" }, signal: gone.signal });
      await served.echo.held(how === "send" ? 2 : 3);
      if (how === "stream") await reply;
      gone.abort();
      await reply.catch(() => undefined);
      const aborted = await firstEvent(`/agents/echo/${how}/events`, "aborted");
      expect(aborted.data).toMatchObject({ agent: "echo", instance_id: how, session: "default" });
    }
  });

  test("are aborted on request, by session or all together, and report whether anything was running", async () => {
    const reply = served.send("/agents/echo/busy", { body: { message: "hold", session: "s" } });
    await served.echo.held(4);
    const abort = (body: unknown) => served.send("/agents/echo/busy/abort", { body });
    expect((await abort({ session: "other" })).body).toEqual({ aborted: false });
    expect((await abort({ session: "s" })).body).toEqual({ aborted: true });
    expect([(await reply).status, (await reply).body.error.type]).toEqual([409, "aborted"]);
    expect((await abort({})).body).toEqual({ aborted: false });
    expect((await abort({ session: 7 })).status).toBe(400);
  });

  test("can take longer than the idle limit of a connection", async () => {
    const patient = await serveForTest({ limits: { idleTimeoutMs: 100 } });
    const reply = patient.send("/agents/echo/1", { body: { message: "hold" } });
    await patient.echo.held(1);
    const silent = connect({ host: "127.0.0.1", port: patient.port });
    silent.resume();
    await once(silent, "close");
    patient.echo.release();
    expect((await reply).body.result.text).toBe("hold");
  });

  test("are deleted once, with all their data", async () => {
    await served.send("/agents/echo/old", { body: { message: "one" } });
    const remove = () => served.send("/agents/echo/old", { method: "DELETE" });
    expect(await remove()).toMatchObject({ status: 200, body: { deleted: true } });
    expect(await remove()).toMatchObject({ status: 404, body: { error: { type: "not_found" } } });
    expect((await served.send("/agents/echo/old/history")).status).toBe(404);
  });

  test("wait for an approval before a tool that needs one", async () => {
    const reply = served.send("/agents/careful/1", { body: { message: "pay 5" } });
    const request = await firstEvent("/agents/careful/1/events", "approval_request");
    const { body } = await served.send("/agents/careful/1/approvals");
    expect(body.approvals).toMatchObject([
      { approval_id: request.data.approval_id, tool: "pay", args: { cents: 5 }, instance_id: "1" },
    ]);
    const path = `/approvals/${request.data.approval_id}`;
    const decide = (instance: string, decision: unknown) =>
      served.send(`/agents/careful/${instance}${path}`, { body: decision });
    expect((await decide("2", { approved: true })).status).toBe(404);
    expect((await decide("1", { approved: "yes" })).status).toBe(400);
    expect((await served.send("/agents/careful/2/approvals")).body).toEqual({ approvals: [] });
    expect((await decide("1", { approved: true })).body).toEqual({ approved: true });
    expect((await reply).body.result.text).toBe("It is done.");
    expect((await decide("1", { approved: true })).status).toBe(404);
    const history = await served.send("/agents/careful/1/history");
    expect(JSON.stringify(history.body)).toContain("Paid 5 cents.");
  });
});

async function firstEvent(path: string, type: string) {
  for await (const event of readEventStream(await served.stream(path)))
    if (event.event === type) return event;
  throw new Error(`There was no ${type}.`);
}

describe("the default agent", () => {
  test("answers as JSON or as a stream, and keeps a session by its name", async () => {
    const { status, body } = await served.send("/prompt/talk", { body: { message: "hello" } });
    expect([status, body.result.text]).toEqual([200, "hello"]);
    const events = await collectEvents(
      await served.stream("/prompt/talk/events", { body: { message: "again" }, headers: { accept: "*/*" } }),
    );
    expect(events.at(-1)).toMatchObject({ event: "result", data: { result: { text: "again" } } });
    const history = await served.send("/agents/default/default/history?session=talk");
    expect(history.body.messages).toHaveLength(4);
    expect((await served.send("/prompt/..%2fx", { body: { message: "hello" } })).status).toBe(400);
    expect((await served.send("/prompt/x", { body: { message: "x", session: "y" } })).status).toBe(400);
  });
});
