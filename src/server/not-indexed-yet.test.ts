import { expect, test } from "vitest";
import { openProject } from "../project/open-project.ts";
import { createTemporaryRepository } from "../testing/temporary-repository.ts";
import { createServer } from "./create-server.ts";

test("during indexing, a server marks incomplete answers, and asks to retry for missing records", async () => {
  await using repository = await createTemporaryRepository({ "CLAUDE.md": "## Rule\n\ntext\n" });
  const project = await openProject({ root: repository.root, indexFile: ":memory:" });
  const indexing = { done: 3, total: 9 };
  const server = createServer({ project: { ...project, indexing: () => indexing } });
  const { url } = await server.listen({ port: 0 });
  const get = async (path: string) => {
    const response = await fetch(url + path);
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  for (const path of ["/api/specs/diagnostics", "/api/specs/coverage", "/api/specs/stale"])
    expect(await get(path)).toMatchObject({ status: 200, body: { indexing } });
  for (const path of ["/api/specs/unknown", "/api/guidelines/0123456789abcdef"])
    expect(await get(path)).toMatchObject({ status: 503, body: { error: { type: "unavailable" } } });
  expect(await get("/api/guidelines?file=src/a.ts")).toMatchObject({ status: 200, body: { total_count: 1 } });
  await server.close();
  await project.close();
});
