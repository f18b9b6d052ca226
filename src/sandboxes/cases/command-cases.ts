import assert from "node:assert/strict";
import { refused, type SandboxCheck } from "./sandbox-check.ts";

/** Runs an argument list without a shell. */
const literally =
  (check: SandboxCheck): SandboxCheck =>
  async (sandbox) => {
    if (sandbox.capabilities.literalExec) await check(sandbox);
  };

/** The promises of every sandbox that runs commands. */
export const commandCases: Readonly<Record<string, SandboxCheck>> = {
  "a command returns its output and exit code": async (sandbox) => {
    const { duration_ms, ...result } = await sandbox.exec({ command: "echo out; echo err >&2; exit 3" });
    assert.deepEqual(result, {
      exit_code: 3,
      stdout: "out\n",
      stderr: "err\n",
      dropped_bytes: 0,
      timed_out: false,
    });
    assert.ok(duration_ms > 0);
  },

  "arguments arrive as they are, through no shell": literally(async (sandbox) => {
    const words = ["$HOME", "`id`", "$(id)", "; id", "a  b", "", "*", "ü🚀", "-n", "it's", "line\nbreak"];
    const { stdout } = await sandbox.exec({ command: ["printf", "<%s>", ...words] });
    assert.equal(stdout, words.map((word) => `<${word}>`).join(""));
  }),

  "a program that cannot be started is a result": literally(async (sandbox) => {
    const missing = await sandbox.exec({ command: ["no-such-program-of-kit"] });
    assert.equal(missing.exit_code, 127);
    assert.match(missing.stderr, /no-such-program-of-kit/);
    await sandbox.writeFile("plain.txt", "x");
    assert.equal((await sandbox.exec({ command: ["./plain.txt"] })).exit_code, 126);
    await refused("invalid_request", [
      () => sandbox.exec({ command: [] }),
      () => sandbox.exec({ command: ["echo", "a\0b"] }),
    ]);
  }),

  "a program of the workspace is not run in place of a system program": literally(async (sandbox) => {
    await sandbox.writeFile("ls", "#!/bin/sh\ntouch PWNED\n");
    await sandbox.writeFile("bin/ls", "#!/bin/sh\ntouch PWNED\n");
    await sandbox.exec({ command: "chmod 755 ls bin/ls" });
    await sandbox.exec({ command: ["ls"] });
    await sandbox.exec({ command: ["ls"], cwd: "bin", env: { PATH: ".:bin::/usr/bin:/bin" } });
    assert.deepEqual([await sandbox.exists("PWNED"), await sandbox.exists("bin/PWNED")], [false, false]);
  }),

  "a command runs in the working folder, or in another folder of the workspace": async (sandbox) => {
    await sandbox.writeFile("sub/deep/a.txt", "alpha");
    const sub = sandbox.at("sub");
    assert.equal((await sandbox.exec({ command: "cat sub/deep/a.txt" })).stdout, "alpha");
    assert.equal((await sub.exec({ command: "cat deep/a.txt" })).stdout, "alpha");
    assert.equal((await sub.exec({ command: "cat a.txt", cwd: "deep" })).stdout, "alpha");
    await refused("not_found", [() => sandbox.exec({ command: "true", cwd: "none" })]);
    await refused("invalid_request", [() => sandbox.exec({ command: "true", cwd: "sub/deep/a.txt" })]);
  },

  "commands have the sandbox's environment, and variables of a call apply to that call only": async (
    sandbox,
  ) => {
    process.env.KIT_TEST_SECRET = "leaked-value";
    try {
      assert.doesNotMatch((await sandbox.exec({ command: "env" })).stdout, /leaked-value/);
    } finally {
      delete process.env.KIT_TEST_SECRET;
    }
    const command = 'printf "%s" "$KIT_TEST_VALUE"';
    assert.equal((await sandbox.exec({ command, env: { KIT_TEST_VALUE: "v $x" } })).stdout, "v $x");
    assert.equal((await sandbox.exec({ command })).stdout, "");
  },

  "standard input is the given text, or empty": async (sandbox) => {
    assert.equal((await sandbox.exec({ command: "cat", stdin: "in ü\n" })).stdout, "in ü\n");
    assert.equal((await sandbox.exec({ command: "cat", timeoutMs: 20_000 })).exit_code, 0);
    // A command does not have to read its large input.
    assert.equal((await sandbox.exec({ command: "true", stdin: "x".repeat(1_000_000) })).exit_code, 0);
  },

  "for a large output, the beginning and the end are kept": async (sandbox) => {
    const { stdout, dropped_bytes } = await sandbox.exec({
      command: "echo first; i=0; while [ $i -lt 20000 ]; do echo 'üüüüüüüüü'; i=$((i+1)); done; echo last",
      maxOutputBytes: 1_000,
    });
    assert.equal(dropped_bytes, 6 + 20_000 * 19 + 5 - 1_000);
    assert.match(stdout, /^first\n/);
    assert.match(stdout, /\nlast\n$/);
    assert.ok(stdout.includes(`${dropped_bytes} bytes dropped`));
    assert.ok(!stdout.includes("\uFFFD") && stdout.length < 1_100);
  },

  "`onOutput` is called while the command runs": async (sandbox) => {
    const received: string[] = [];
    await sandbox.exec({
      command: "echo one; sleep 0.2; echo two >&2",
      onOutput({ stream, text }) {
        received.push(`${stream}:${text}`);
        throw new Error("A listener that fails must not harm the command.");
      },
    });
    assert.deepEqual(received, ["stdout:one\n", "stderr:two\n"]);
  },

  "many commands run concurrently": async (sandbox) => {
    const numbers = Array.from({ length: 20 }, (_, index) => `${index}\n`);
    const results = await Promise.all(
      numbers.map((_, index) => sandbox.exec({ command: `sleep 0.05; echo ${index}` })),
    );
    assert.deepEqual(
      results.map(({ stdout }) => stdout),
      numbers,
    );
  },

  "commands never prompt": async (sandbox) => {
    const { stdout } = await sandbox.exec({ command: 'echo "$PAGER $GIT_PAGER $GIT_TERMINAL_PROMPT"' });
    assert.equal(stdout, "cat cat 0\n");
  },

  "a sandbox that reports isolation enforces a command's access": async (sandbox) => {
    const { wall = "none", description = "" } = (await sandbox.isolation?.()) ?? {};
    assert.ok(wall === "none" || /^[^\n]+$/.test(description));
    if (wall === "none") return;
    await sandbox.writeFile("kept/a.txt", "old");
    const command = "echo new > kept/a.txt; echo new > b.txt; rm -rf kept; cat kept/a.txt";
    const read = await sandbox.exec({ command, access: { write: false } });
    assert.deepEqual([read.stdout, await sandbox.exists("b.txt")], ["old", false]);
    const access = { write: true, readOnlyPaths: ["kept", "missing"] };
    const written = await sandbox.exec({ command, access });
    assert.deepEqual([written.stdout, await sandbox.exists("b.txt")], ["old", true]);
    await sandbox.exec({ command });
    assert.equal(await sandbox.exists("kept"), false);
  },
};
