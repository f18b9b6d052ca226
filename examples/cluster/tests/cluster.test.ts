import { match } from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

const root = join(import.meta.dirname, "..");

test("a kit is killed with parcels in its hands, others take them over, and nothing is lost", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ["main.ts", "--kill", "2"], {
    cwd: root,
    timeout: 120_000,
  });
  match(stdout, /kit 2 is killed, with [1-9]\d* parcels in its hands\./);
  match(stdout, /They were taken over by kit [13] \(\d+\)( and kit [13] \(\d+\))?, after \d+ ms\./);
  match(stdout, /nothing lost, nothing twice\.$/m);
});
