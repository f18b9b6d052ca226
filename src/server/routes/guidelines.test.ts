import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { KitClient } from "../../client/index.ts";
import { serveForTest, serveForTests } from "../testing/serve-for-tests.ts";
import { serveService } from "../testing/serve-service.ts";

let client: KitClient;
const served = serveForTests({
  authorize: ({ action }) => action !== "project.write",
  files: {
    "CLAUDE.md": "# Rules\n\n## Money\n\nAmounts are whole cents.\n",
    ".cursor/rules/style.mdc": "---\nglobs: src/**/*.ts\nalwaysApply: false\n---\n\nNamed exports only.\n",
    ".cursor/rules/docs.mdc": "---\nglobs: nowhere/**/*.md\nalwaysApply: false\n---\n\nShort sentences.\n",
  },
});
beforeAll(() => {
  client = new KitClient({ baseUrl: served.url });
});
afterAll(() => expect(served.errors).toEqual([]));

test("guidelines that apply to a file are listed by tool, with reason and tokens, without the texts", async () => {
  const { explanations } = await client.guidelines.explain("src/app.ts", { tools: ["fw_b", "fw_c"] });
  const [cursor, claude] = explanations;
  expect(cursor).toMatchObject({
    tool: "fw_b",
    applied: [{ source_file: ".cursor/rules/style.mdc", reason: "pattern", detail: "src/**/*.ts", line: 1 }],
  });
  expect(claude?.applied.map(({ source_file }) => source_file)).toEqual(["CLAUDE.md"]);
  expect(claude?.tokens).toBeGreaterThan(0);
  expect(JSON.stringify(explanations)).not.toContain("whole cents");
  const all = await client.guidelines.explain("src/app.ts");
  expect(all.explanations.length).toBeGreaterThan(8);
  const [first] = claude?.applied ?? [];
  expect((await client.guidelines.get(first?.guideline_id ?? "")).content).toContain("whole cents");
});

test("lint names patterns that match nothing", async () => {
  expect(await client.guidelines.lint()).toContainEqual(
    expect.objectContaining({ rule: "glob-no-match", path: ".cursor/rules/docs.mdc" }),
  );
});

test("a sync is shown as files before and after, and written only on request and with permission", async () => {
  const plan = await client.guidelines.sync({ source: "fw_c", targets: ["agents"] });
  expect(plan).toMatchObject({ source: "fw_c", in_sync: false, written: [] });
  expect(plan.entries[0]).toMatchObject({ path: "AGENTS.md", action: "create" });
  expect(plan.entries[0]?.after).toContain("whole cents");
  expect(existsSync(join(served.root, "AGENTS.md"))).toBe(false);
  await expect(
    client.guidelines.sync({ source: "fw_c", targets: ["agents"], preview: false }),
  ).rejects.toMatchObject({ code: "forbidden" });
  expect(existsSync(join(served.root, "AGENTS.md"))).toBe(false);
  const open = await serveForTest({ files: { "CLAUDE.md": "# Rules\n\nBe brief.\n" } });
  const body = { source: "fw_c", targets: ["agents"], preview: false };
  const written = await open.send("/api/guidelines/sync", { body });
  expect(written.body.written).toEqual(["AGENTS.md"]);
  expect(readFileSync(join(open.root, "AGENTS.md"), "utf8")).toContain("Be brief.");
});

test("skills and MCP servers are synced over HTTP, without a source of rules, too", async () => {
  const skill = "---\nname: a\ndescription: Does.\n---\nDo.\n";
  const open = await serveForTest({ files: { ".agents/skills/a/SKILL.md": skill } });
  const body = { with: { skills: "agents" }, targets: ["fw_c", "codex"] };
  const preview = await open.send("/api/guidelines/sync", { body });
  expect(preview.body).toMatchObject({ in_sync: false, targets: ["fw_c", "codex"], written: [] });
  expect(preview.body).not.toHaveProperty("source");
  const { body: result } = await open.send("/api/guidelines/sync", { body: { ...body, preview: false } });
  expect(result.written).toEqual([".claude/skills/a/SKILL.md", "kit.synced.json"]);
  expect(readFileSync(join(open.root, ".claude/skills/a/SKILL.md"), "utf8")).toBe(skill);
  for (const wrong of [{ skills: "vi" }, { mcp: "agents" }, { hooks: "kit" }])
    expect(await open.send("/api/guidelines/sync", { body: { with: wrong } })).toMatchObject({ status: 400 });
});

test("settings of MCP servers, which can hold keys, are shown only to those who may write them", async () => {
  const secret = "hunter2-of-a-person";
  const files = {
    ".cursor/mcp.json": JSON.stringify({ mcpServers: { mine: { command: "x", env: { A: secret } } } }),
    ".mcp.json": '{"mcpServers": {"a": {"command": "y"}}}',
  };
  const reader = await serveService({ authorize: ({ action }) => action === "project.read", files });
  const request = { body: { with: { mcp: "fw_c" }, targets: ["fw_b"] } };
  const reply = await reader.send("/api/guidelines/sync", request);
  expect([reply.status, JSON.stringify(reply.body).includes(secret)]).toEqual([403, false]);
  await reader.close();
  const writer = await serveForTest({ files });
  const { body } = await writer.send("/api/guidelines/sync", request);
  expect(body.entries[0]).toMatchObject({ path: ".cursor/mcp.json", action: "update" });
});

test("a write over HTTP is bound to its preview if the client requests that", async () => {
  const open = await serveForTest({ files: { "CLAUDE.md": "# Rules\n\nBe brief.\n" } });
  const openClient = new KitClient({ baseUrl: open.url });
  const request = { source: "fw_c", targets: ["agents"] } as const;
  const { entries } = await openClient.guidelines.sync(request);
  const expected = entries.map(({ path, digest }) => ({ path, digest }));
  const target = join(open.root, "AGENTS.md");
  writeFileSync(target, "# By hand\n");
  await expect(openClient.guidelines.sync({ ...request, preview: false, expected })).rejects.toMatchObject({
    code: "conflict",
    meta: { files: ["AGENTS.md"] },
  });
  await expect(
    openClient.guidelines.sync({ ...request, preview: false, expected: [] }),
  ).rejects.toMatchObject({
    code: "conflict",
  });
  expect(readFileSync(target, "utf8")).toBe("# By hand\n");
  const [guideline] = (await openClient.guidelines.list({ source: "fw_c" })).guidelines;
  const conversion = { guideline_id: guideline?.id ?? "", format: "gemini" } as const;
  const { change } = await openClient.guidelines.convert(conversion);
  writeFileSync(join(open.root, "GEMINI.md"), "# By hand\n");
  await expect(
    openClient.guidelines.convert({ ...conversion, preview: false, expected: change?.digest }),
  ).rejects.toMatchObject({ code: "conflict", meta: { files: ["GEMINI.md"] } });
  expect(readFileSync(join(open.root, "GEMINI.md"), "utf8")).toBe("# By hand\n");
});

test("wrong input is named", async () => {
  const wrong: readonly [path: string, body: unknown, issue: string][] = [
    ["/api/guidelines/explain", undefined, "query.file"],
    ["/api/guidelines/explain?file=../x", undefined, "query.file"],
    ["/api/guidelines/explain?file=a.ts&tools=vi", undefined, "query.tools.0"],
    ["/api/guidelines/explain?file=a.ts&user=true", undefined, "query.user"],
    ["/api/guidelines/sync", { source: "vi" }, "body.source"],
    ["/api/guidelines/sync", { targets: "agents" }, "body.targets"],
    ["/api/guidelines/sync", { preview: "no" }, "body.preview"],
    ["/api/guidelines/sync", { write: true }, "body.write"],
    ["/api/guidelines/sync", { expected: "all" }, "body.expected"],
    ["/api/guidelines/sync", { expected: [{ path: "a" }] }, "body.expected.0.digest"],
  ];
  for (const [path, body, issue] of wrong) {
    const reply = await served.send(path, body === undefined ? {} : { body });
    expect([path, reply.status, reply.body.error.meta.issues[0].path]).toEqual([path, 400, issue]);
  }
});
