import { describe, expect, test, vi } from "vitest";
import type { AuthorizeRequest } from "../../protocol/access.ts";
import { serveForTest } from "../testing/serve-for-tests.ts";
import { createAuthorization } from "./authorize.ts";

interface Named {
  readonly name: string;
}

const namesOf = (entries: readonly Named[]): readonly string[] => entries.map(({ name }) => name);
const asJson = { headers: { accept: "application/json" } };

describe("a list contains only what its caller may see:", () => {
  const withoutSome = ({ agent, workflow }: AuthorizeRequest): boolean =>
    agent !== "echo" && workflow !== "strict";

  test("agents and workflows, also in the overview", async () => {
    const { send } = await serveForTest({ authorize: withoutSome });
    expect(namesOf((await send("/agents")).body.agents)).toEqual(["careful", "default", "hidden"]);
    expect(namesOf((await send("/workflows")).body.workflows)).toEqual([
      "asked",
      "failing",
      "slow",
      "talking",
      "waiting",
    ]);
    const { body } = await send("/", asJson);
    expect([body.agents, body.workflows]).toEqual([
      ["careful", "default"],
      ["asked", "failing", "slow", "talking", "waiting"],
    ]);
  });

  test("runs and dispatches, page by page", async () => {
    const { send, service } = await serveForTest({ authorize: withoutSome });
    for (const workflow of ["strict", "talking", "strict", "talking"]) {
      await service.startRun(workflow, { n: 1 });
    }
    for (const agent of ["echo", "careful", "echo"]) {
      await service.dispatch({ agent, instance_id: "1", session: "default" }, "x");
    }
    const first = (await send("/runs?limit=3")).body;
    expect(first.runs.map((run: AuthorizeRequest) => run.workflow)).toEqual(["talking", "talking"]);
    // The run that is left is one that the sender may not see: nothing tells that there is another page.
    expect(first.next_cursor).toBeUndefined();
    const single = (await send("/runs?limit=1")).body;
    expect([single.runs.length, typeof single.next_cursor]).toEqual([1, "string"]);
    const second = (await send(`/runs?limit=1&cursor=${single.next_cursor}`)).body;
    expect([second.runs.length, second.next_cursor]).toEqual([1, undefined]);
    const { dispatches } = (await send("/dispatches")).body;
    expect(dispatches.map(({ agent }: AuthorizeRequest) => agent)).toEqual(["careful"]);
  });
});

describe("behind the first page of a long list, kit looks through 600 records", () => {
  async function firstPage(limit: number, isVisible: (position: number) => boolean) {
    let asked = 0;
    const { page } = createAuthorization(
      ({ run_id }) => {
        asked += 1;
        return isVisible(Number(run_id));
      },
      { hookTimeoutMs: 1_000, permissionMs: 1_000 },
    );
    const { items, next_cursor } = await page(
      async ({ cursor = "0", limit: count = limit }) => {
        const start = Number(cursor);
        const read = Array.from({ length: count }, (_, index) => start + index);
        return { items: read, next_cursor: String(start + count) };
      },
      (position) => ({ principal: undefined, action: "run.read", run_id: String(position) }),
    );
    return { items, next_cursor, asked };
  }

  test("if a caller may see nothing in them, the page after its items is named", async () => {
    const page = await firstPage(100, (position) => position === 7);
    expect(page).toEqual({ items: [7], next_cursor: "100", asked: 700 });
  });

  test("a page without items names the page after those that it looked through", async () => {
    expect(await firstPage(100, () => false)).toEqual({ items: [], next_cursor: "700", asked: 700 });
    expect(await firstPage(1_000, () => false)).toEqual({ items: [], next_cursor: "2000", asked: 2_000 });
    expect(await firstPage(1, () => false)).toEqual({ items: [], next_cursor: "51", asked: 51 });
    expect(await firstPage(100, (position) => position === 250)).toMatchObject({ items: [250] });
  });
});

describe("specs and guidelines of the project", () => {
  const paths = ["/", "/api/specs", "/api/specs/graph", "/api/specs/diagnostics", "/api/guidelines"];

  test("specs and guidelines are hidden from callers without permission", async () => {
    const { send } = await serveForTest({
      authorize: ({ instance }) => instance?.startsWith("own-") === true,
    });
    for (const path of [...paths, "/api/specs/some-id", "/api/guidelines/some-id"]) {
      expect([path, (await send(path, asJson)).status]).toEqual([path, 403]);
    }
    const posts = ["specs/impact", "specs/validate", "guidelines/convert", "guidelines/export"];
    for (const path of posts) {
      expect([path, (await send(`/api/${path}`, { body: {} })).status]).toEqual([path, 403]);
    }
    expect((await send("/health")).status).toBe(200);
  });

  test("guidelines are written only by callers with permission", async () => {
    const { send } = await serveForTest({ authorize: ({ action }) => action === "project.read" });
    for (const path of paths) expect([path, (await send(path, asJson)).status]).toEqual([path, 200]);
    const [guideline] = (await send("/api/guidelines")).body.guidelines;
    const convert = { guideline_id: guideline.id, format: "steering" };
    expect((await send("/api/guidelines/convert", { body: convert })).status).toBe(200);
    const written = await send("/api/guidelines/convert", { body: { ...convert, preview: false } });
    expect([written.status, written.body.error.type]).toEqual([403, "forbidden"]);
  });
});

test("permissions are checked before bodies, so that a body tells nothing about work that the sender may not see", async () => {
  const { send, service } = await serveForTest({
    authorize: ({ action }) =>
      !["run.signal", "run.cancel", "dispatch.retry", "dispatch.cancel"].includes(action),
  });
  const { run_id } = await service.startRun("waiting", {});
  const { dispatch_id } = await service.dispatch(
    { agent: "echo", instance_id: "1", session: "default" },
    "x",
  );
  for (const path of [
    `/runs/${run_id}/signal`,
    `/runs/${run_id}/cancel`,
    `/dispatches/${dispatch_id}/retry`,
    `/dispatches/${dispatch_id}/cancel`,
  ])
    for (const body of [{ wrong: true }, []])
      expect([path, (await send(path, { body })).status]).toEqual([path, 403]);
});

test("a run or dispatch that the sender may not read looks as if there were none", async () => {
  const mayReach = ({ workflow, agent }: AuthorizeRequest): boolean =>
    workflow !== "waiting" && agent !== "echo";
  const { send, service } = await serveForTest({ authorize: mayReach });
  const { run_id } = await service.startRun("waiting", {});
  const target = { agent: "echo", instance_id: "1", session: "default" };
  const { dispatch_id } = await service.dispatch(target, "x");
  const reads = ["/runs/ID", "/runs/ID/events", "/runs/ID/journal", "/runs/ID/stream", "/dispatches/ID"];
  const posts = ["/runs/ID/signal", "/runs/ID/cancel", "/runs/ID/retry"];
  for (const path of [...reads, ...posts, "/dispatches/ID/retry", "/dispatches/ID/cancel"]) {
    const options = reads.includes(path) ? {} : { body: {} };
    const there = path.startsWith("/runs") ? run_id : dispatch_id;
    const missing = await send(path.replace("ID", "none"), options);
    expect([path, missing.status]).toEqual([path, 404]);
    const { status, body } = await send(path.replace("ID", there), options);
    expect([path, status, body.error]).toEqual([path, 404, missing.body.error]);
  }
});

test("a retry of a run asks for permission and reads the run once, as other changes of a run do", async () => {
  const asked: string[] = [];
  const { send, service } = await serveForTest({
    authorize: ({ action }) => {
      asked.push(action);
      return true;
    },
  });

  const { run_id } = await service.startRun("failing", {});
  await service.engine.awaitRun(run_id);
  const getRun = vi.spyOn(service.engine, "getRun");
  expect((await send(`/runs/${run_id}/retry`, { body: {} })).status).toBe(200);
  expect([asked, getRun.mock.calls]).toEqual([["run.retry"], [[run_id]]]);
});
