import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { RequestEntry } from "./answer-request.ts";
import { createServer, type KitServer } from "./create-server.ts";
import { serveForTest } from "./testing/serve-for-tests.ts";
import { shopFiles } from "./testing/shop-files.ts";
import { type TemporaryProject, temporaryProject } from "./testing/temporary-project.ts";

let shop: TemporaryProject;
let server: KitServer;
const entries: RequestEntry[] = [];

beforeAll(async () => {
  shop = await temporaryProject(shopFiles);
  server = createServer({ project: shop.project, onRequest: (entry) => entries.push(entry) });
});
afterAll(async () => {
  await shop.remove();
});

async function jsonOf(reply: Response) {
  return JSON.parse(await reply.text());
}

async function get(path: string, headers: Record<string, string> = {}) {
  const reply = await server.app.request(path, { headers: { accept: "application/json", ...headers } });
  return { status: reply.status, headers: reply.headers, body: await jsonOf(reply) };
}

async function post(path: string, body: unknown) {
  const reply = await server.app.request(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: reply.status, headers: reply.headers, body: await jsonOf(reply) };
}

describe("guidelines", () => {
  test("are listed with counts of all matches", async () => {
    const { status, body } = await get("/api/guidelines");
    expect(status).toBe(200);
    expect(body.total_count).toBe(5);
    expect(body.counts_by_source).toMatchObject({ fw_c: 2, fw_b: 1, steering: 1, agents: 1 });
    expect(body.guidelines[0]).toMatchObject({ title: expect.any(String), is_sample: false });
  });

  test("are found by source, also under its tool's name, by file and by words", async () => {
    expect((await get("/api/guidelines?source=claude")).body.total_count).toBe(2);
    expect((await get("/api/guidelines?source=fw_c")).body.total_count).toBe(2);
    expect((await get("/api/guidelines?source=kiro")).body.guidelines[0].source_type).toBe("steering");
    expect((await get("/api/guidelines?q=INTEGERS+cents")).body.guidelines).toMatchObject([
      { title: "Money" },
    ]);
    const files = async (file: string) =>
      (await get(`/api/guidelines?file=${file}`)).body.guidelines.map(
        (one: { source_file: string }) => one.source_file,
      );
    expect(await files("src/api/orders.ts")).toContain(".cursor/rules/api.mdc");
    expect(await files("src/other.ts")).not.toContain(".cursor/rules/api.mdc");
  });

  test("come in pages", async () => {
    const first = await get("/api/guidelines?limit=2");
    expect(first.body.guidelines).toHaveLength(2);
    expect(first.body.total_count).toBe(5);
    const second = await get(`/api/guidelines?limit=4&cursor=${encodeURIComponent(first.body.next_cursor)}`);
    expect(second.body.guidelines).toHaveLength(3);
    expect(second.body.next_cursor).toBeUndefined();
    for (const list of ["/api/guidelines", "/api/specs"]) {
      const { status, body } = await get(`${list}?cursor=nonsense`);
      expect([status, body.error.meta.issues[0].path]).toEqual([400, "query.cursor"]);
    }
  });

  test("are read one by one", async () => {
    const [one] = (await get("/api/guidelines?q=money")).body.guidelines;
    expect((await get(`/api/guidelines/${one.id}`)).body).toEqual(one);
    expect((await get("/api/guidelines/0000000000000000")).body.error.type).toBe("guideline_not_found");
  });

  test("are converted to a format under each of its names, and exported", async () => {
    const [one] = (await get("/api/guidelines?source=cursor")).body.guidelines;
    const steering = await post("/api/guidelines/convert", { guideline_id: one.id, format: "steering" });
    expect(steering.status).toBe(200);
    expect(steering.body).toMatchObject({
      filename: expect.stringMatching(/^[a-z0-9-]+\.md$/),
      frontmatter: { inclusion: "fileMatch", fileMatchPattern: "src/api/**" },
      source_id: one.id,
      losses: expect.any(Array),
    });
    const section = await post("/api/guidelines/convert", { guideline_id: one.id, format: "claude" });
    expect(section.body).toMatchObject({ filename: "CLAUDE.md", frontmatter: {} });
    const unknown = await post("/api/guidelines/convert", { guideline_id: "nope", format: "claude" });
    expect([unknown.status, unknown.body.error.type]).toEqual([404, "guideline_not_found"]);
    const whole = await post("/api/guidelines/export", { format: "cursor" });
    expect(whole.body.filename).toBe(".cursorrules");
    expect(whole.body.content).toContain("## Money");
    expect((await post("/api/guidelines/export", { format: "kiro" })).status).toBe(400);
  });
});

describe("specs", () => {
  test("are searched and filtered, also under a framework's display name", async () => {
    const { body } = await get("/api/specs?q=refund&framework=kiro&spec_type=requirement");
    expect(body.specs[0]).toMatchObject({
      id: "fw_a-checkout-requirements-req2",
      path: ".kiro/specs/checkout/requirements.md",
      metadata: { source: { start_line: expect.any(Number) } },
    });
    expect(body.total_count).toBe(body.counts_by_framework.fw_a);
  });

  test("are listed for every framework, and without the rules of instruction files if rules is false", async () => {
    const list = async (query: string) => (await get(`/api/specs?${query}`)).body;
    for (const query of ["", "rules=true", "priority=medium"])
      expect(await list(query)).toMatchObject({ total_count: 7, counts_by_framework: { fw_a: 4, fw_c: 2 } });
    for (const query of ["rules=false", "framework=fw_a"])
      expect(await list(query)).toMatchObject({ total_count: 4 });
    expect(await list("framework=claude")).toMatchObject({ total_count: 2 });
    expect(await list("q=input")).toMatchObject({ total_count: 1 });
    const { next_cursor, specs } = await list("limit=3");
    const rest = await list(`limit=3&cursor=${next_cursor}`);
    expect(new Set([...specs, ...rest.specs].map(({ id }) => id)).size).toBe(6);
    expect((await get("/api/specs?rules=maybe")).status).toBe(400);
  });

  test("are read one by one, whatever characters their ids contain", async () => {
    const { body } = await get("/api/specs/fw_a-checkout-requirements-req1");
    expect(body).toMatchObject({ title: expect.stringContaining("Place an order"), framework: "fw_a" });
    expect((await get("/api/specs/fw_%61-checkout-requirements-req1")).body).toEqual(body);
    expect((await get("/api/specs/nope")).body.error.type).toBe("spec_not_found");
    expect((await get("/api/specs/__proto__")).body.error.type).toBe("spec_not_found");
  });

  test("an id that is too long is refused, unless the project has it", async () => {
    const title = "第一章注文と支払いと返金と配送と在庫と顧客と店舗と書籍と著者と出版社と価格と割引";
    const long = await temporaryProject({ "CLAUDE.md": `# x\n\n## ${title}${title}\n\nText.\n` });
    onTestFinished(() => long.remove());
    const { app } = createServer({ project: long.project });
    const [block] = (await jsonOf(await app.request("/api/specs"))).specs;
    expect(Buffer.byteLength(block.id)).toBeGreaterThan(128);
    expect((await app.request(`/api/specs/${encodeURIComponent(block.id)}`)).status).toBe(200);
    expect((await app.request(`/api/specs/${encodeURIComponent(`${block.id}x`)}`)).status).toBe(400);
  });

  test("show what a change affects, and which tests to run", async () => {
    const { status, body } = await post("/api/specs/impact", { files: ["src/api/orders.ts"] });
    expect(status).toBe(200);
    expect(body.affected.map((one: { id: string }) => one.id)).toContain("fw_a-checkout-requirements-req1");
    expect(body.affected[0]).toMatchObject({ score: expect.any(Number), path: expect.any(Array) });
    expect(await post("/api/specs/impact", {})).toMatchObject({
      body: { affected: [], tests: [], files: [] },
    });
    expect((await post("/api/specs/impact", { ids: ["nope"] })).body.error.type).toBe("spec_not_found");
  });

  test("form a graph, and have diagnostics", async () => {
    const graph = (await get("/api/specs/graph")).body;
    expect(graph.nodes.length).toBeGreaterThan(0);
    expect(graph.edges.length).toBeGreaterThan(0);
    expect((await get("/api/specs/diagnostics")).body).toMatchObject({ diagnostics: expect.any(Array) });
  });

  test("are validated from outside", async () => {
    const [good] = (await get("/api/specs")).body.specs;
    expect((await post("/api/specs/validate", { blocks: [good] })).body).toEqual({
      valid: true,
      diagnostics: [],
    });
    const bad = { ...good, lifecycle: "asleep", created_at: "yesterday" };
    const { status, body } = await post("/api/specs/validate", { blocks: [bad, good, 7] });
    expect(status).toBe(200);
    expect(body.valid).toBe(false);
    expect(new Set(body.diagnostics.map((one: { rule: string }) => one.rule))).toEqual(
      new Set(["enum", "timestamp", "duplicate-id", "structure"]),
    );
  });
});

describe("every route", () => {
  test("names each fault of a query or body by its path", async () => {
    const query = await get("/api/specs?limit=0&framework=docx&colour=red");
    expect(query.body.error).toMatchObject({ type: "invalid_request", message: "The query is not valid." });
    expect(query.body.error.meta.issues.map((issue: { path: string }) => issue.path).sort()).toEqual([
      "query.colour",
      "query.framework",
      "query.limit",
    ]);
    const body = await post("/api/specs/impact", { files: ["../x", "/etc/passwd", 7], depth: 6 });
    expect(body.body.error.meta.issues.map((issue: { path: string }) => issue.path)).toEqual([
      "body.files.0",
      "body.files.1",
      "body.files.2",
      "body.depth",
    ]);
  });

  test("reports a missing required value", async () => {
    const { body } = await post("/api/guidelines/convert", {});
    expect(body.error.meta.issues).toEqual([
      { path: "body.guideline_id", message: "is required" },
      { path: "body.format", message: "is required" },
    ]);
  });

  test("answers HEAD and OPTIONS, and refuses other methods with the list of allowed ones", async () => {
    const head = await server.app.request("/api/specs", { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);
    const options = await server.app.request("/api/specs/impact", { method: "OPTIONS" });
    expect([options.status, options.headers.get("allow")]).toEqual([204, "POST, OPTIONS"]);
    const put = await server.app.request("/api/specs/impact", { method: "PUT" });
    expect([put.status, put.headers.get("allow")]).toEqual([405, "POST, OPTIONS"]);
    expect((await jsonOf(put)).error.type).toBe("method_not_allowed");
    expect((await get("/api/specs/impact")).status).toBe(405);
  });

  test("sends headers that restrict other pages", async () => {
    for (const path of ["/health", "/", "/nope"]) {
      const reply = await server.app.request(path, { headers: { accept: "text/html" } });
      expect(reply.headers.get("x-content-type-options")).toBe("nosniff");
      expect(reply.headers.get("content-security-policy")).toContain(
        path === "/" ? "default-src 'self'; script-src 'self'" : "default-src 'none'",
      );
      expect(reply.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
      expect(reply.headers.get("access-control-allow-origin")).toBeNull();
    }
  });

  test("logs the method, path, status and time, and no query", async () => {
    entries.length = 0;
    await get("/api/specs?q=private");
    expect(entries).toEqual([
      { method: "GET", path: "/api/specs", status: 200, duration_ms: expect.any(Number) },
    ]);
  });
});

test("an unexpected error is an internal error without details, which only the log has", async () => {
  const broken = {
    ...shop.project,
    specs: { ...shop.project.specs, graph: () => JSON.parse(`secret of ${shop.root}`) },
  };
  const errors: unknown[] = [];
  const { app } = createServer({ project: broken, onError: (error) => errors.push(error) });
  const reply = await app.request("/api/specs/graph");
  expect(reply.status).toBe(500);
  expect(await jsonOf(reply)).toEqual({
    error: {
      type: "internal_error",
      message: "Something went wrong inside kit.",
      details: expect.any(String),
    },
  });
  expect(errors).toEqual([expect.any(SyntaxError)]);
  const dev = createServer({ project: broken, dev: true });
  const { error } = await jsonOf(await dev.app.request("/api/specs/graph"));
  expect(error.dev).toMatchObject({
    name: "SyntaxError",
    stack: expect.stringContaining("create-server.test"),
  });
});

test("the overview of a project links to something in this project, whatever its names contain", async () => {
  const hostile = await temporaryProject({
    ...shopFiles,
    "src/<img src=x onerror=alert(1)>'.ts": "",
    ".kiro/specs/a/requirements.md":
      "### Requirement 1: <script>fetch('//evil')</script>\n\n1. WHEN x THEN y SHALL z\n",
  });
  onTestFinished(() => hostile.remove());
  const { app } = createServer({ project: hostile.project });
  const json = await jsonOf(await app.request("/", { headers: { accept: "application/json" } }));
  expect(json).toMatchObject({
    name: "kit",
    specs: expect.any(Number),
    links: { openapi: "/openapi.json" },
  });
  for (const link of Object.values<string>(json.links)) {
    expect([link, (await app.request(link)).status]).toEqual([link, 200]);
  }
});

test("the overview of a server with agents lists them", async () => {
  const served = await serveForTest();
  const { body } = await served.send("/", { headers: { accept: "application/json" } });
  expect(body.agents).toEqual(["careful", "default", "echo"]);
  expect(body.workflows).toContain("strict");
  for (const link of Object.values<string>(body.links)) {
    expect([link, (await fetch(`${served.url}${link}`)).status]).toEqual([link, 200]);
  }
});
