import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { SqliteSessionStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { resultsOf } from "../../src/testing/backend/backend-stage.ts";
import { testFolder } from "../../src/testing/test-folder.ts";

test("a graph whose process is killed with SIGKILL resumes without a repeated request or call", async () => {
  const folder = testFolder(onTestFinished);
  const file = join(folder, "sessions.db");
  expect(await live(file, "step 2")).toEqual(["asked 1", "ran 1", "asked 2", "ran 2", "hangs"]);
  expect(await live(file, "step 3")).toEqual(["asked 3", "ran 3", "hangs"]);
  expect(await live(file, "tool 4")).toEqual(["asked 4", "ran 4", "hangs"]);
  expect(await live(file, undefined)).toEqual(["asked to end", "All is done."]);
  const store = new SqliteSessionStore({ file });
  onTestFinished(() => store.close());
  const log = store.read({ agent: "tester", instance_id: "1", session: "default" });
  const results = resultsOf(log);
  expect(results.slice(0, 3)).toEqual(["marked 1", "marked 2", "marked 3"]);
  // The outcome of the interrupted call is unknown, and the tool must not run twice.
  expect(results.slice(3)).toEqual([expect.stringMatching(/interrupted|unknown|not known/i)]);
});

/** Runs the process until it hangs and is killed, or ends; returns what it prints. */
async function live(file: string, hangsAt: string | undefined): Promise<readonly string[]> {
  const script = join(import.meta.dirname, "graph-until-killed.ts");
  const child = spawn(process.execPath, [script, file, ...(hangsAt === undefined ? [] : [hangsAt])]);
  let output = "";
  let failed = "";
  child.stdout.on("data", (chunk) => {
    output += chunk;
    if (output.endsWith("hangs\n")) child.kill("SIGKILL");
  });
  child.stderr.on("data", (chunk) => {
    failed += chunk;
  });
  const [code, signal] = await once(child, "close");
  expect(failed).toBe("");
  expect([code, signal]).toEqual(hangsAt === undefined ? [0, null] : [null, "SIGKILL"]);
  return output.trimEnd().split("\n");
}
