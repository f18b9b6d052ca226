import { once } from "node:events";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { campaignTest } from "../../testing/campaign.suite.ts";
import { testFolder } from "../../testing/test-folder.ts";
import { runKit, startKit } from "../testing/run-kit.ts";

const root = testFolder(afterAll);
beforeAll(() => {
  mkdirSync(join(root, "src/workflows"), { recursive: true });
  writeFileSync(
    join(root, "src/workflows/release.js"),
    `export async function run(ctx) {
  const version = await ctx.step("build", () => "1.0.7");
  const answer = await ctx.waitFor("approval");
  return answer.approved === true ? "released " + version : "not released";
}
`,
  );
});

/** Resolves with what a process has said on stderr, once it has said this. */
async function untilSaid(child: ReturnType<typeof startKit>, expected: RegExp): Promise<string> {
  let output = "";
  for await (const chunk of child.stderr) {
    output += String(chunk);
    if (expected.test(output)) return output;
  }
  throw new Error(`It ended without saying so: ${output}`);
}

test("a run that waits prints the command for its signal, and ends once another terminal runs that command", async () => {
  const child = startKit(["run", "release"], { cwd: root });
  const stdout = text(child.stdout);
  const ended = once(child, "close");
  const output = await untilSaid(child, /--payload .*\n/);
  expect(output).toContain("The run waits for approval.");
  const [, runId = ""] = /kit runs signal (run_\w+) approval --payload '\{\}'/.exec(output) ?? [];

  const list = await runKit(["runs", "list"], { cwd: root });
  expect(list.stdout).toContain(`${runId}\trelease\twaiting`);
  // The end of an id, as a narrow table shows it, is enough.
  const signal = ["runs", "signal", `…${runId.slice(-8)}`, "approval", "--payload", '{"approved": true}'];
  expect((await runKit(signal, { cwd: root })).stderr).toBe("Accepted.\n");
  expect(await stdout).toBe("released 1.0.7\n");
  expect(await ended).toEqual([0, null]);
  expect(readdirSync(join(root, ".kit/terminals"))).toEqual([]);
});

campaignTest(
  "work that a killed terminal has left is no longer listed as a run, and the next command removes it",
  async () => {
    const child = startKit(["run", "release"], { cwd: root });
    await untilSaid(child, /--payload .*\n/);
    child.kill("SIGKILL");
    await once(child, "close");
    expect((await runKit(["runs", "list"], { cwd: root })).stdout).toBe("");
    const next = startKit(["run", "release"], { cwd: root });
    await untilSaid(next, /--payload .*\n/);
    expect(readdirSync(join(root, ".kit/terminals"))).toEqual([String(next.pid)]);
    next.kill("SIGINT");
    expect(await once(next, "close")).toEqual([130, null]);
  },
);
