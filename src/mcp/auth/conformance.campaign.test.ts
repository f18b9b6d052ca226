import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../../..");
const suite = join(root, "node_modules/@modelcontextprotocol/conformance/dist/index.js");
const client = join(import.meta.dirname, "testing/conformance-client.ts");

function runSuite(args: readonly string[], cwd: string): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [suite, ...args],
      { maxBuffer: 64 * 1_048_576, cwd },
      (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code), output: stdout + stderr }),
    );
  });
}

// Extensions that no configuration of kit asks for: keys instead of secrets, tokens bound to a key, and logins of an enterprise.
const notSupported = [
  "auth/client-credentials-jwt",
  "auth/dpop",
  "auth/dpop-nonce",
  "auth/enterprise-managed-authorization",
  "auth/wif-jwt-bearer",
];

test("the official suite's scenarios of authorization pass, except extensions that kit does not have", async () => {
  const folder = await mkdtemp(join(tmpdir(), "kit-conformance-"));
  try {
    const { output: list } = await runSuite(["list"], folder);
    const scenarios = [...list.matchAll(/ - (auth\/[\w-]+) /g)].map(([, name = ""]) => name);
    expect(scenarios.length).toBeGreaterThanOrEqual(33);
    const failed: string[] = [];
    const next = scenarios.values();
    // Two at a time: the suite itself would start all at once, and some then run out of time.
    const work = async (): Promise<void> => {
      for (const scenario of next) {
        const { code } = await runSuite(
          ["client", "--command", `${process.execPath} ${client}`, "--scenario", scenario, "-o", folder],
          root,
        );
        if (code !== 0) failed.push(scenario);
      }
    };
    await Promise.all([work(), work()]);
    expect(failed.toSorted()).toEqual(notSupported);
  } finally {
    await rm(folder, { recursive: true });
  }
}, 900_000);
