import { afterAll, expect, test } from "vitest";
import { openService } from "../../app/service/open-service.ts";
import { testFolder } from "../../testing/test-folder.ts";
import { runKit } from "../testing/run-kit.ts";

const root = testFolder(afterAll);

test("a process that does all of the work is listed as the only node, with the waiting work and its age", async () => {
  const service = await openService({ root });
  await service.close();
  const { exitCode, stdout } = await runKit(["cluster", "--json"], { cwd: root });
  expect(exitCode).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    engine: "embedded",
    distributed: false,
    nodes: [{ state: "working", shards: 1, running: 0, queued: 0, is_this: true }],
    unowned_shards: 0,
    waiting_runs: 0,
    problems: [],
  });
  const table = await runKit(["cluster"], { cwd: root, columns: 80 });
  expect(table.stdout).toMatch(/NODE.*ADDRESS.*STATE.*SHARDS/);
  expect(table.stdout).toContain("0 at work, 0 waiting, 0 failed");
});
