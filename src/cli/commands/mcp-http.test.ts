import { cp } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { repositoryRoot } from "../../../scripts/files.ts";
import { testFolder } from "../../testing/test-folder.ts";
import { runKit } from "../testing/run-kit.ts";

test("the options of a server are those of kit mcp --http, and --verify is not", async () => {
  const folder = testFolder(onTestFinished);
  await cp(join(repositoryRoot, "examples/shop"), folder, { recursive: true });
  const without = await runKit(["mcp", "--port", "0"], { cwd: folder });
  expect([without.exitCode, without.stderr]).toEqual([2, expect.stringContaining("kit mcp --http")]);
  const verify = await runKit(["mcp", "--http", "--verify"], { cwd: folder });
  expect([verify.exitCode, verify.stderr]).toEqual([2, expect.stringContaining("--verify is no option")]);
  const open = await runKit(["mcp", "--http", "--host", "0.0.0.0", "--port", "0"], { cwd: folder });
  expect([open.exitCode, open.stderr]).toEqual([1, expect.stringContaining("without keys")]);
});
