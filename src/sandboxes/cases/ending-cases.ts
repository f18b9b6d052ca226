import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import type { Sandbox } from "../contract.ts";
import type { SandboxCheck } from "./sandbox-check.ts";

/** A command that appends to a file until it ends. */
const beatInto = (file: string): string => `while :; do echo beat >> ${file}; sleep 0.1; done`;

/** Fails if a process still appends to one of these files. */
async function nothingBeats(sandbox: Sandbox, files: readonly string[]): Promise<void> {
  const sizes = async (): Promise<readonly number[]> =>
    Promise.all(
      files.map(async (file) => ((await sandbox.exists(file)) ? (await sandbox.stat(file)).size : 0)),
    );
  const before = await sizes();
  await setTimeout(1_000);
  assert.deepEqual(await sizes(), before);
}

/** The promises about the end of commands. */
export const endingCases: Readonly<Record<string, SandboxCheck>> = {
  "the time limit ends a command with all processes that it started": async (sandbox) => {
    const result = await sandbox.exec({
      command: `trap '' TERM; (${beatInto("survived")}) & echo begun; sleep 3600`,
      timeoutMs: 2_000,
    });
    assert.deepEqual([result.exit_code, result.timed_out, result.stdout], [null, true, "begun\n"]);
    await nothingBeats(sandbox, ["survived"]);
  },

  "an abort ends a command, which resolves; an abort before the start rejects": async (sandbox) => {
    const controller = new AbortController();
    const reason = new Error("enough");
    const result = await sandbox.exec({
      command: "echo begun; sleep 3600",
      signal: controller.signal,
      onOutput: () => controller.abort(reason),
    });
    assert.deepEqual([result.exit_code, result.timed_out, result.stdout], [null, false, "begun\n"]);
    await assert.rejects(sandbox.exec({ command: "touch started", signal: controller.signal }), reason);
    assert.equal(await sandbox.exists("started"), false);
  },

  "background processes end with their command": async (sandbox) => {
    const { exit_code, stdout } = await sandbox.exec({
      command: `(${beatInto("one")}) & (${beatInto("two")}) >/dev/null 2>&1 & echo done`,
    });
    assert.deepEqual([exit_code, stdout], [0, "done\n"]);
    await nothingBeats(sandbox, ["one", "two"]);
  },

  "`close` ends running commands": async (sandbox) => {
    const begun = Promise.withResolvers<void>();
    const running = sandbox.exec({ command: "echo begun; sleep 3600", onOutput: () => begun.resolve() });
    await begun.promise;
    await sandbox.close();
    const { exit_code, timed_out } = await running;
    assert.deepEqual([exit_code, timed_out], [null, false]);
  },
};
