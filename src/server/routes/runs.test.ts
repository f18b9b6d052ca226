import { describe, expect, test } from "vitest";
import { collectEvents, readEventStream } from "../testing/read-event-stream.ts";
import { serveForTests } from "../testing/serve-for-tests.ts";

const served = serveForTests();

const run = (workflow: string, body: unknown = {}, query = "") =>
  served.send(`/workflows/${workflow}${query}`, { body });

describe("workflows", () => {
  test("are listed with their files", async () => {
    const { body } = await served.send("/workflows");
    expect(body.workflows).toContainEqual({
      name: "strict",
      path: "src/workflows/strict.ts",
      payload_schema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
    });
    expect(body.workflows).toContainEqual({ name: "slow", path: "src/workflows/slow.ts" });
  });

  test("are accepted, or waited for, and their run can be read", async () => {
    const accepted = await run("strict", { n: 2 });
    expect(accepted.status).toBe(202);
    expect(accepted.body).toEqual({
      status: "accepted",
      run_id: expect.stringMatching(/^run_[0-9A-Z]{26}$/),
    });
    const waited = await run("strict", { payload: { n: 21 } }, "?wait=result");
    expect([waited.status, waited.body]).toEqual([
      200,
      { status: "completed", run_id: expect.any(String), result: { doubled: 42 } },
    ]);
    const { status, body } = await served.send(`/runs/${waited.body.run_id}`);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      run_id: waited.body.run_id,
      workflow: "strict",
      status: "completed",
      payload: { n: 21 },
      result: { doubled: 42 },
      started_at: expect.any(String),
      ended_at: expect.any(String),
      duration_ms: expect.any(Number),
      event_count: expect.any(Number),
    });
  });

  test("get the parameters of the query that the route does not know in `ctx.req`", async () => {
    const query = "?wait=result&source=ci&source=cd";
    expect((await run("asked", {}, query)).body).toMatchObject({ result: { source: ["ci", "cd"] } });
    expect((await run("asked", {}, "?wait=forever&source=ci")).status).toBe(400);
  });

  test("have a journal with the result of each step", async () => {
    const { body } = await run("strict", { n: 4 }, "?wait=result");
    const journal = await served.send(`/runs/${body.run_id}/journal`);
    expect(journal).toMatchObject({
      status: 200,
      body: {
        entries: [{ position: 1, kind: "step", name: "double", state: "done", value: 8, ended_as: 1 }],
      },
    });
    expect((await served.send(`/runs/${body.run_id}/journal?after=1`)).body).toEqual({ entries: [] });
    expect((await served.send("/runs/none/journal")).status).toBe(404);
    expect((await served.send(`/runs/${body.run_id}/journal?limit=0`)).status).toBe(400);
  });

  test("stream their events, then their result", async () => {
    const events = await collectEvents(await served.stream("/workflows/strict", { body: { n: 3 } }));
    const types = events.map(({ event }) => event);
    expect(types).toEqual(["run_start", "log", "step_start", "step_end", "run_end", "result"]);
    expect(events.slice(0, -1).map(({ id }) => id)).toEqual(["1", "2", "3", "4", "5"]);
    expect(events.at(-1)?.data).toMatchObject({ status: "completed", result: { doubled: 6 } });
  });

  test("fail with an envelope that names the run, and has the thrown error only in its cause", async () => {
    const failed = await run("failing", {}, "?wait=result");
    expect([failed.status, failed.body.error.type]).toEqual([500, "internal_error"]);
    expect(served.errors).toEqual([]);
    expect(failed.body.error.meta.run_id).toMatch(/^run_/);
    const cause = {
      name: "Error",
      message: "secret of the workflow",
      path: "src/workflows/failing.ts",
      line: 2,
    };
    expect(failed.body.error.meta.cause).toEqual(cause);
    expect(`${failed.body.error.message} ${failed.body.error.details}`).not.toContain("secret");
    const events = await collectEvents(await served.stream("/workflows/failing", { body: {} }));
    expect(events.at(-1)).toMatchObject({
      event: "error",
      data: { error: { type: "internal_error", meta: { run_id: expect.stringMatching(/^run_/) } } },
    });
    expect(events.at(-2)).toMatchObject({ event: "run_end", data: { error: { cause } } });
    expect(JSON.stringify(events)).not.toContain(served.root);
  });

  test("refuse an invalid payload, unknown names and unknown queries", async () => {
    const wrong = await run("strict", { n: "seven" });
    expect([wrong.status, wrong.body.error.type]).toEqual([400, "invalid_request"]);
    expect(wrong.body.error.meta.issues[0].path).toMatch(/^body\.(?:payload\.)?n$/);
    expect((await run("strict", { n: 1 }, "?wait=forever")).body.error.meta.issues[0].path).toBe(
      "query.wait",
    );
    expect((await run("strict", { n: 1 }, "?wait=result&wait=none")).status).toBe(400);
    expect((await run("nope")).body.error).toMatchObject({
      type: "workflow_not_found",
      message: expect.not.stringContaining("strict"),
    });
    expect((await run("constructor")).status).toBe(404);
    expect((await run("..%2fagents%2fecho")).status).toBe(400);
    const list = await served.send("/workflows/strict?wait=result", { body: [1, 2, 3] });
    expect([list.status, list.body.error.type]).toEqual([400, "invalid_request"]);
  });

  test("run once for requests with the same key", async () => {
    const start = (n: number) =>
      served.send("/workflows/strict?wait=result", { body: { n }, headers: { "idempotency-key": "once" } });
    const first = await start(5);
    expect((await start(5)).body).toEqual(first.body);
    expect((await start(6)).status).toBe(409);
  });
});

describe("runs", () => {
  test("are listed newest first, by status and workflow, in pages", async () => {
    for (const n of [1, 2, 3]) await run("strict", { n }, "?wait=result");
    const { body } = await served.send("/runs?workflow=strict&status=completed&limit=2");
    expect(body.runs.map((one: { payload: { n: number } }) => one.payload.n)).toEqual([3, 2]);
    const next = await served.send(
      `/runs?workflow=strict&status=completed&limit=1&cursor=${encodeURIComponent(body.next_cursor)}`,
    );
    expect(next.body.runs[0].payload.n).toBe(1);
    for (const query of ["status=asleep", "limit=0", "limit=1001", "cursor=nonsense", "colour=red"]) {
      expect([query, (await served.send(`/runs?${query}`)).status]).toEqual([query, 400]);
    }
  });

  test("have events in pages and by type", async () => {
    const { body } = await run("talking", { lines: 4 }, "?wait=result");
    const events = (query: string) => served.send(`/runs/${body.run_id}/events${query}`);
    const first = await events("?limit=2");
    expect(first.body.events.map((event: { index: number }) => event.index)).toEqual([1, 2]);
    expect(first.body.next_after).toBe(2);
    const rest = await events("?after=2&limit=1000");
    expect(rest.body.events.map((event: { index: number }) => event.index)).toEqual([3, 4, 5, 6]);
    expect(rest.body.next_after).toBeUndefined();
    const logs = await events("?types=log,run_end");
    expect(new Set(logs.body.events.map((event: { type: string }) => event.type))).toEqual(
      new Set(["log", "run_end"]),
    );
    for (const query of [
      "?after=-1",
      "?after=1e2",
      "?limit=1001",
      "?types=nonsense",
      "?after=99999999999999999",
    ]) {
      expect([query, (await events(query)).status]).toEqual([query, 400]);
    }
  });

  test("can be followed from any index, while they run and after they have ended", async () => {
    const { body } = await run("waiting");
    const path = `/runs/${body.run_id}/stream`;
    const live = readEventStream(await served.stream(path));
    expect((await live.next()).value?.event).toBe("run_start");
    const reported = await served.send(`/runs/${body.run_id}/signal`, {
      body: { name: "word", payload: "go" },
    });
    expect([reported.status, reported.body]).toEqual([202, { status: "accepted" }]);
    const rest = [];
    for await (const event of live) rest.push(event);
    expect(rest.at(-1)).toMatchObject({ event: "result", data: { result: { said: "go" } } });
    const allEvents = await collectEvents(await served.stream(path));
    for (let after = 0; after < allEvents.length; after += 1) {
      const byHeader = { headers: { "last-event-id": String(after) } };
      // The result has no position: a browser that connects again after the last event has had it.
      const again = after === allEvents.length - 1 ? [] : allEvents.slice(after);
      expect(await collectEvents(await served.stream(path, byHeader))).toEqual(again);
      expect(await collectEvents(await served.stream(`${path}?after=${after}`))).toEqual(
        allEvents.slice(after),
      );
    }
    const both = await served.stream(`${path}?after=0`, { headers: { "last-event-id": "1" } });
    expect(await collectEvents(both)).toEqual(allEvents.slice(1));
    for (const id of ["-1", "x", "1.5", "1\t2"]) {
      const wrong = await served.send(path, { headers: { "last-event-id": id } });
      expect([id, wrong.status, wrong.body.error.type]).toEqual([id, 400, "invalid_request"]);
    }
  });

  test("are cancelled once, and their followers see that", async () => {
    const { body } = await run("waiting");
    const following = served.stream(`/runs/${body.run_id}/stream`).then(collectEvents);
    const cancel = () => served.send(`/runs/${body.run_id}/cancel`, { method: "POST" });
    expect((await cancel()).body).toEqual({ cancelled: true });
    expect((await following).at(-1)).toMatchObject({
      event: "error",
      data: { error: { type: "aborted", meta: { run_id: body.run_id } } },
    });
    expect((await cancel()).body).toEqual({ cancelled: false });
    const signal = await served.send(`/runs/${body.run_id}/signal`, { body: { name: "word" } });
    expect([signal.status, signal.body.error.type]).toEqual([409, "conflict"]);
    expect((await served.send(`/runs/${body.run_id}/signal`, { body: {} })).status).toBe(400);
  });

  test("that do not exist are not found on any route", async () => {
    const requests = [
      ["", {}],
      ["/events", {}],
      ["/stream", {}],
      ["/cancel", { method: "POST" }],
      ["/signal", { body: { name: "word" } }],
    ] as const;
    for (const [route, request] of requests) {
      const unknown = await served.send(`/runs/run_does_not_exist${route}`, request);
      expect([route, unknown.status, unknown.body.error.type]).toEqual([route, 404, "run_not_found"]);
      expect((await served.send(`/runs/..%2f..%2fetc${route}`, request)).status).toBe(400);
    }
  });
});
