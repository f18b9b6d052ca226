import { afterAll, beforeAll, expect, test } from "vitest";
import { type ServedService, serveService } from "../testing/serve-service.ts";

let served: ServedService;
beforeAll(async () => {
  served = await serveService({
    authorize: ({ action, instance }) => !(instance === "secret" && action === "agent.read"),
  });
  for (const instance of ["a", "secret", "b"])
    await served.send(`/agents/echo/${instance}`, { body: { message: "hello" } });
});
afterAll(async () => {
  expect(served.errors).toEqual([]);
  await served.close();
});

test("sessions are listed in pages with the time of their last use, without those that the sender may not read", async () => {
  const first = (await served.send("/sessions?limit=2")).body;
  expect(first.sessions).toEqual([
    {
      agent: "echo",
      instance_id: "a",
      session: "default",
      created_at: expect.any(String),
      touched_at: expect.any(String),
      position: expect.any(Number),
      status: "idle",
    },
  ]);
  const { body } = await served.send(`/sessions?limit=2&cursor=${first.next_cursor}`);
  expect([body.sessions.length, body.sessions[0].instance_id, body.next_cursor]).toEqual([1, "b", undefined]);
});

test("a page names no next page in which the sender may see nothing", async () => {
  const { body } = await served.send("/sessions?agent=echo&instance_id=secret&limit=1");
  expect(body).toEqual({ sessions: [] });
  const first = (await served.send("/sessions?limit=1")).body;
  const second = (await served.send(`/sessions?limit=1&cursor=${first.next_cursor}`)).body;
  expect([first, second].map(({ sessions }) => sessions[0].instance_id)).toEqual(["a", "b"]);
  expect(second.next_cursor).toBeUndefined();
});

test("a recently used session is not pruned, and an invalid age is refused", async () => {
  const prune = (body: unknown) => served.send("/sessions/prune", { body });
  expect((await prune({ older_than_seconds: 3_600 })).body).toEqual({ removed: [], in_use: 0, failed: [] });
  const wrong = [
    {},
    { older_than_seconds: "30d" },
    { older_than_seconds: 3_599 },
    { older_than_seconds: 1e12 },
  ];
  for (const body of [...wrong, { older_than_seconds: 3_600, dryrun: true }])
    expect([body, (await prune(body)).status]).toEqual([body, 400]);
  expect((await prune({ older_than_seconds: 3_600, cursor: "none" })).status).toBe(400);
});
