import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, expect, test } from "vitest";
import { workspaceName } from "../../sandboxes/host/workspace-name.ts";
import { SqliteSessionStore } from "../../stores/sqlite/sqlite-store.ts";
import { sampleNote } from "../../testing/sample-records.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { type RunResult, runKit } from "../testing/run-kit.ts";

const folder = await createTemporaryRepository({ "package.json": '{"type": "module"}' });
afterAll(() => folder[Symbol.asyncDispose]());
const kit = (...args: readonly string[]): Promise<RunResult> =>
  runKit(["sessions", ...args], { cwd: folder.root });

const keyOf = (instance_id: string) => ({ agent: "reviewer", instance_id, session: "default" });
const workspaceOf = (instance: string): string =>
  join(folder.root, ".kit/sandboxes", workspaceName(keyOf(instance)));
// The sessions of an agent whose file is gone from the project.
beforeAll(async () => {
  expect((await kit("list")).stderr).toContain("No session to show.");
  await mkdir(join(folder.root, ".kit"), { recursive: true });
  const file = join(folder.root, ".kit/sessions.db");
  const store = new SqliteSessionStore({ file });
  for (const instance of ["old", "new"]) {
    await store.append({ key: keyOf(instance), expected: 0, entries: [sampleNote, sampleNote] });
    await mkdir(workspaceOf(instance), { recursive: true });
    await writeFile(join(workspaceOf(instance), "a.txt"), "a");
  }
  store.close();
  const database = new DatabaseSync(file);
  database.exec("UPDATE entries SET at = at - 31 * 86400000 WHERE id >> 24 = 1");
  database.exec("UPDATE sessions SET used_at = used_at - 31 * 86400000 WHERE id = 1");
  database.close();
});

test("sessions are listed with the time of their last use, page by page", async () => {
  const { stdout } = await kit("list");
  expect(stdout).toMatch(/reviewer\/old\s+default\s+2\s+/);
  const page = JSON.parse((await kit("list", "--order", "oldest", "-n", "1", "--json")).stdout);
  expect(page).toMatchObject({ total: 2, sessions: [{ instance_id: "old", position: 2, state: "idle" }] });
  const next = await kit("list", "--order", "oldest", "--cursor", page.next_cursor, "--json");
  expect(JSON.parse(next.stdout)).toMatchObject({ sessions: [{ instance_id: "new" }] });
  expect((await kit("list", "-n", "1")).stderr).toContain("There are 2 in all");
  const found = async (...options: readonly string[]): Promise<readonly string[]> =>
    JSON.parse((await kit("list", ...options, "--json")).stdout).sessions.map(
      ({ instance_id }: { instance_id: string }) => instance_id,
    );
  expect(await found("--since", "3d")).toEqual(["new"]);
  expect(await found("--until", "3d", "--search", "OLD")).toEqual(["old"]);
  expect(await found("--status", "failed")).toEqual([]);
  expect((await kit("list", "--since", "soon")).stderr).toContain("'soon' is not a time.");
  expect((await kit("list", "--cursor", "none")).stderr).toContain("cursor");
});

test.each([
  [["prune"], "--older-than is missing."],
  [["prune", "--older-than", "soon"], "--older-than: 'soon' is not a time from 1h to 3650d."],
  [["prune", "--older-than", "0d"], "'0d' is not a time"],
  [["prune", "--older-than", "-1d"], "not a time"],
  [["prune", "--older-than", "99999d"], "'99999d' is not a time"],
])("%j is refused, and nothing is removed", async (args, message) => {
  const { exitCode, stderr } = await kit(...args);
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining(message)]);
  expect(existsSync(workspaceOf("old"))).toBe(true);
});

test("a dry run prints what would be removed; without it, exactly that is removed, with its workspace", async () => {
  const dry = await kit("prune", "--older-than", "30d", "--dry-run");
  expect([dry.exitCode, dry.stderr]).toEqual([0, expect.stringContaining("1 session would be removed.")]);
  expect(existsSync(workspaceOf("old"))).toBe(true);
  const pruned = JSON.parse((await kit("prune", "--older-than", "30d", "--json")).stdout);
  expect(pruned).toMatchObject({ dry_run: false, removed: [{ instance_id: "old" }], in_use: 0 });
  expect([existsSync(workspaceOf("old")), existsSync(workspaceOf("new"))]).toEqual([false, true]);
  const { sessions } = JSON.parse((await kit("list", "--json")).stdout);
  expect(sessions).toMatchObject([{ instance_id: "new" }]);
  expect((await kit("prune", "--older-than", "4w")).stderr).toContain("Removed 0 sessions.");
});
