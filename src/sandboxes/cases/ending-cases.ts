import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import type { SandboxCheck } from "./sandbox-check.ts";

/** How commands end, as every sandbox promises it that runs any. */
export const endingCases: Readonly<Record<string, SandboxCheck>> = {
  "its time limit ends a command with all that it started": async (sandbox) => {
    const started = performance.now();
    const result = await sandbox.exec({
      command: "trap '' TERM; (sleep 3; touch survived) & echo begun; sleep 30",
      timeoutMs: 300,
    });
    assert.deepEqual([result.exit_code, result.timed_out, result.stdout], [null, true, "begun\n"]);
    assert.ok(performance.now() - started < 10_000);
    await setTimeout(3_500);
    assert.equal(await sandbox.exists("survived"), false);
  },

  "an abort ends a command too, and resolves; before the start it rejects": async (sandbox) => {
    const controller = new AbortController();
    const reason = new Error("enough");
    const result = await sandbox.exec({
      command: "echo begun; sleep 30",
      signal: controller.signal,
      onOutput: () => controller.abort(reason),
    });
    assert.deepEqual([result.exit_code, result.timed_out, result.stdout], [null, false, "begun\n"]);
    await assert.rejects(sandbox.exec({ command: "touch started", signal: controller.signal }), reason);
    assert.equal(await sandbox.exists("started"), false);
  },

  "what is left in the background ends with its command": async (sandbox) => {
    const started = performance.now();
    const { exit_code, stdout } = await sandbox.exec({
      command: "(sleep 3; touch one) & (sleep 3; touch two) >/dev/null 2>&1 & echo done",
    });
    assert.deepEqual([exit_code, stdout], [0, "done\n"]);
    assert.ok(performance.now() - started < 2_900);
    await setTimeout(3_500);
    assert.deepEqual([await sandbox.exists("one"), await sandbox.exists("two")], [false, false]);
  },

  "closing ends what still runs": async (sandbox) => {
    const running = sandbox.exec({ command: "sleep 30" });
    await setTimeout(200);
    await sandbox.close();
    const { exit_code, timed_out } = await running;
    assert.deepEqual([exit_code, timed_out], [null, false]);
  },
};
