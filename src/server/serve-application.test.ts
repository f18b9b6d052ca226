import { mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { createAgent } from "../agents/define/create-agent.ts";
import type { ApplicationData } from "../app/service/open-application.ts";
import { defineWorkflow } from "../workflows/define-workflow.ts";
import { type ServedApplication, serveApplication } from "./serve-application.ts";

const shop: ApplicationData = {
  name: "The shop",
  files: {
    "AGENTS.md": "# Rules\n\n## Money\n\nAmounts are whole cents.\n",
    ".kiro/specs/returns/requirements.md":
      "# Requirements\n\n## Requirement 1: Returns\n\n#### Acceptance Criteria\n\n1. WHEN asked THEN the system SHALL accept it.\n",
    ".agents/skills/explain/SKILL.md": new TextEncoder().encode(
      "---\nname: explain\ndescription: Explains a file.\n---\nExplain it.\n",
    ),
  },
  modules: {
    "kit.config.ts": async () => ({
      default: { agent: { model: "offline/guide" }, server: { expose: "all" } },
    }),
    "src/agents/reviewer.ts": async () => ({ default: createAgent({ description: "Reviews." }) }),
    "src/agents/_shared.ts": async () => ({ nothing: true }),
    "src/agents/team/lead.ts": async () => ({ default: createAgent({ description: "Leads." }) }),
    "src/agents/broken.ts": async () => ({ agent: 1 }),
    "src/workflows/add.ts": async () => ({
      default: defineWorkflow({ run: async (ctx) => ({ sum: await ctx.step("add", () => 3) }) }),
    }),
    "src/lib/helper.ts": async () => {
      throw new Error("No agent lies here.");
    },
  },
};

const opened: ServedApplication[] = [];
afterEach(async () => {
  for (const application of opened.splice(0)) await application.close({ timeoutMs: 0 });
});
const serve = async (
  data: ApplicationData,
  options: Parameters<typeof serveApplication>[1] = {},
): Promise<ServedApplication> => {
  const served = await serveApplication(data, { env: {}, ...options });
  opened.push(served);
  return served;
};
// biome-ignore lint/suspicious/noExplicitAny: replies differ by route.
const ask = async (served: ServedApplication, path: string, body?: unknown): Promise<any> => {
  const method = body === undefined ? "GET" : "POST";
  const headers = { "content-type": "application/json" };
  const request = new Request(`http://localhost${path}`, { method, headers, body: JSON.stringify(body) });
  return await (await served.fetch(request)).json();
};

test("an application without a project folder has its agents, workflows, specs, guidelines and skills", async () => {
  const served = await serve(shop);
  const { agents } = await ask(served, "/agents");
  expect(agents.map(({ name }: { name: string }) => name)).toEqual(["reviewer", "team.lead"]);
  const { result } = await ask(served, "/agents/reviewer/1", { message: "Which rules apply to src/a.ts?" });
  expect(result.text).toContain("whole cents");
  expect((await ask(served, "/workflows/add?wait=result", {})).result).toEqual({ sum: 3 });
  const { specs } = await ask(served, "/api/specs");
  expect(specs[0].path).toBe(".kiro/specs/returns/requirements.md");
  expect((await ask(served, "/api/guidelines")).guidelines).toMatchObject([{ source_file: "AGENTS.md" }]);
  expect(served.project.name).toBe("The shop");
  expect(served.service.app.problems().map(({ path }) => path)).toEqual(["src/agents/broken.ts"]);
});

test("closing removes its temporary folder, and it never reads the process's own folder", async () => {
  const before = process.env.TMPDIR;
  const folder = mkdtempSync(join(tmpdir(), "kit-none-"));
  process.env.TMPDIR = folder;
  try {
    const served = await serveApplication({ name: "x", files: {}, modules: {} }, { env: {} });
    expect(served.project.files()).toEqual([]);
    await served.close({ timeoutMs: 0 });
    expect(readdirSync(folder)).toEqual([]);
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  }
});

test.each(["../a.md", "/a.md", "a//b.md", "a/../../b.md", "..\\a.md", ""])(
  "a file with a path outside of the project is refused: %j",
  async (path) => {
    await expect(serve({ name: "x", files: { [path]: "" }, modules: {} })).rejects.toMatchObject({
      code: "invalid_request",
      message: expect.stringContaining(JSON.stringify(path)),
    });
  },
);

test("its configuration is checked like that of a folder, and the environment overrides it", async () => {
  const wrong = { "kit.config.ts": async () => ({ default: { agnt: {} } }) };
  await expect(serve({ name: "x", files: {}, modules: wrong })).rejects.toMatchObject({
    message: expect.stringContaining("agnt"),
  });
  const toml = { name: "x", files: { "kit.toml": '[agent]\nmodel = "offline/guide"\n' }, modules: {} };
  const served = await serve(toml, { env: { KIT_API_KEYS: "a-key-of-the-test" } });
  expect(served.loaded.config.agent?.model).toBe("offline/guide");
  expect((await served.fetch(new Request("http://localhost/api/specs"))).status).toBe(401);
  expect((await served.fetch(new Request("https://shop.example/health"))).status).toBe(200);
});

test("without a key it accepts only names of this machine", async () => {
  const served = await serve({ name: "x", files: {}, modules: {} });
  expect((await served.fetch(new Request("http://localhost/api/specs"))).status).toBe(200);
  for (const host of ["shop.example", "10.0.0.7"])
    expect((await served.fetch(new Request(`https://${host}/api/specs`))).status).toBe(403);
});
