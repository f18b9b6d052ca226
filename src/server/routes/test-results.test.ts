import { expect, test } from "vitest";
import { KitClient } from "../../client/index.ts";
import { serveForTest } from "../testing/serve-for-tests.ts";
import { serveService } from "../testing/serve-service.ts";

const files = {
  ".kiro/specs/auth/requirements.md":
    "# Requirements\n\n## Requirement 1: Login\n\n#### Acceptance Criteria\n\n1. WHEN a user logs in THEN the system SHALL open a session.\n",
  "src/login.test.ts": 'test("opens a session (auth#1.1)", () => {});\n',
};
const report = (message: string): string =>
  `<testsuite><testcase classname="src/login.test.ts" name="opens a session (auth#1.1)"><failure message="${message}"/></testcase></testsuite>`;

test("a submitted report appears in coverage, without the application's secrets", async () => {
  const served = await serveForTest({ files, env: { MY_API_KEY: "sk-very-secret-value-123" } });
  const client = new KitClient({ baseUrl: served.url });
  expect(await client.specs.recordResults({ report: report("used sk-very-secret-value-123") })).toMatchObject(
    {
      tests: 1,
      failed: 1,
    },
  );
  const { criteria, totals } = await client.specs.coverage({ show: "failing" });
  expect(totals.failing).toBe(1);
  expect(criteria[0]?.tests[0]?.result).toMatchObject({
    status: "failed",
    message: expect.stringContaining("used"),
  });
  expect(JSON.stringify(criteria)).not.toContain("sk-very-secret-value-123");
  expect((await client.specs.coverage({ show: "passing" })).criteria).toEqual([]);
});

test("the history of a criterion comes in pages, and needs a criterion", async () => {
  const served = await serveForTest({ files, env: {} });
  const client = new KitClient({ baseUrl: served.url });
  const passing = report("x").replace(/<failure[^>]*\/>/, "");
  for (const text of [report("x"), passing, report("x")]) await client.specs.recordResults({ report: text });
  const first = await client.specs.history({ criterion: "auth#1.1", limit: 2 });
  expect(first.history.map(({ state }) => state)).toEqual(["failing", "passing"]);
  const second = await client.specs.history({
    criterion: "auth#1.1",
    limit: 2,
    cursor: String(first.next_cursor),
  });
  expect(second).toEqual({ history: [expect.objectContaining({ state: "failing", source: "submitted" })] });
  expect(await client.specs.history({ criterion: "auth#1.1", after: new Date().toISOString() })).toEqual({
    history: [],
  });
  for (const [query, path] of [
    ["", "query.criterion"],
    ["?criterion=a%231&after=soon", "query.after"],
    ["?criterion=a%231&limit=0", "query.limit"],
  ] as const) {
    const refused = await served.send(`/api/specs/history${query}`);
    expect([refused.status, refused.body.error.meta.issues[0].path]).toEqual([400, path]);
  }
});

test("reports are bounded, and only for who may write the project", async () => {
  const served = await serveService({ files, authorize: ({ action }) => action !== "project.write" });
  const send = (body: unknown) => served.send("/api/specs/results", { body });
  expect((await send({ report: report("x") })).status).toBe(403);
  await served.close();
  const open = await serveForTest({ files });
  const large = `${report("x").replace("</testsuite>", "")}${"<testcase name='other'/>".repeat(100_000)}</testsuite>`;
  expect((await open.send("/api/specs/results", { body: { report: large } })).body).toMatchObject({
    tests: 1,
  });
  const tooLarge = await open.send("/api/specs/results", { body: { report: "x".repeat(17 * 1024 * 1024) } });
  expect([tooLarge.status, tooLarge.body.error.type]).toEqual([413, "payload_too_large"]);
  for (const [body, path] of [
    [{}, "body.report"],
    [{ report: "" }, "body.report"],
    [{ report: 3 }, "body.report"],
    [{ report: "<html/>" }, "body.report"],
    [{ report: report("x"), format: "tap" }, "body.format"],
    [{ report: report("x"), file: "x" }, "body.file"],
  ] as const) {
    const refused = await open.send("/api/specs/results", { body });
    expect([refused.status, refused.body.error.meta.issues[0].path]).toEqual([400, path]);
  }
});
