import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Sandbox } from "./contract.ts";

/** Running commands, as every sandbox promises it that has the capability. */
export function sandboxExecContract(given: () => Sandbox): void {
  const execTest = (name: string, work: (sandbox: Sandbox) => Promise<void>): void => {
    test(name, async (context) => {
      const sandbox = given();
      if (!sandbox.capabilities.exec) context.skip("It runs no commands.");
      await work(sandbox);
    });
  };
  const literalTest = (name: string, work: (sandbox: Sandbox) => Promise<void>): void =>
    execTest(name, async (sandbox) => {
      if (sandbox.capabilities.literalExec) await work(sandbox);
    });

  execTest("a command gives its output and its exit code", async (sandbox) => {
    const result = await sandbox.exec({ command: "echo out; echo err >&2; exit 3" });
    expect(result).toMatchObject({
      exit_code: 3,
      stdout: "out\n",
      stderr: "err\n",
      dropped_bytes: 0,
      timed_out: false,
    });
    expect(result.duration_ms).toBeGreaterThan(0);
  });

  literalTest("arguments arrive as they are, through no shell", async (sandbox) => {
    const words = ["$HOME", "`id`", "$(id)", "; id", "a  b", "", "*", "ü🚀", "-n", "it's", "line\nbreak"];
    const result = await sandbox.exec({ command: ["printf", "<%s>", ...words] });
    expect(result.stdout).toBe(words.map((word) => `<${word}>`).join(""));
  });

  literalTest("a program that is not there is a result", async (sandbox) => {
    expect(await sandbox.exec({ command: ["no-such-program-of-kit"] })).toMatchObject({
      exit_code: 127,
      stderr: expect.stringContaining("no-such-program-of-kit"),
    });
    await sandbox.writeFile("plain.txt", "x");
    expect(await sandbox.exec({ command: ["./plain.txt"] })).toMatchObject({ exit_code: 126 });
    await expect(sandbox.exec({ command: [] })).rejects.toMatchObject({ code: "invalid_request" });
    await expect(sandbox.exec({ command: ["echo", "a\0b"] })).rejects.toMatchObject({
      code: "invalid_request",
    });
  });

  literalTest("a program of the workspace does not stand in for one of the system", async (sandbox) => {
    await sandbox.writeFile("ls", "#!/bin/sh\ntouch PWNED\n");
    await sandbox.writeFile("bin/ls", "#!/bin/sh\ntouch PWNED\n");
    await sandbox.exec({ command: ["chmod", "755", "ls", "bin/ls"] });
    await sandbox.exec({ command: ["ls"] });
    await sandbox.exec({ command: ["ls"], cwd: "bin", env: { PATH: `.:bin::${"/usr/bin:/bin"}` } });
    expect(await sandbox.exists("PWNED")).toBe(false);
    expect(await sandbox.exists("bin/PWNED")).toBe(false);
  });

  execTest("a command runs in the working folder, or in one of the workspace", async (sandbox) => {
    await sandbox.writeFile("sub/deep/a.txt", "alpha");
    expect((await sandbox.exec({ command: "cat sub/deep/a.txt" })).stdout).toBe("alpha");
    expect((await sandbox.at("sub").exec({ command: "cat deep/a.txt" })).stdout).toBe("alpha");
    expect((await sandbox.at("sub").exec({ command: "cat a.txt", cwd: "deep" })).stdout).toBe("alpha");
    await expect(sandbox.exec({ command: "true", cwd: "none" })).rejects.toMatchObject({ code: "not_found" });
    await expect(sandbox.exec({ command: "true", cwd: "sub/deep/a.txt" })).rejects.toMatchObject({
      code: "invalid_request",
    });
  });

  execTest("the environment is its own; variables of a call are gone after it", async (sandbox) => {
    process.env.KIT_TEST_SECRET = "leaked-value";
    try {
      expect((await sandbox.exec({ command: "env" })).stdout).not.toContain("leaked-value");
    } finally {
      delete process.env.KIT_TEST_SECRET;
    }
    const command = 'printf "%s" "$KIT_TEST_VALUE"';
    expect((await sandbox.exec({ command, env: { KIT_TEST_VALUE: "v $x" } })).stdout).toBe("v $x");
    expect((await sandbox.exec({ command })).stdout).toBe("");
  });

  execTest("standard input is what is given, or at its end", async (sandbox) => {
    expect((await sandbox.exec({ command: "cat", stdin: "in ü\n" })).stdout).toBe("in ü\n");
    expect(await sandbox.exec({ command: "cat", timeoutMs: 5_000 })).toMatchObject({
      exit_code: 0,
      stdout: "",
    });
    // A command that reads nothing of a large input is fine.
    expect(await sandbox.exec({ command: "true", stdin: "x".repeat(1_000_000) })).toMatchObject({
      exit_code: 0,
    });
  });

  execTest("of a large output the beginning and the end are kept", async (sandbox) => {
    const result = await sandbox.exec({
      command: "echo first; i=0; while [ $i -lt 20000 ]; do echo 'üüüüüüüüü'; i=$((i+1)); done; echo last",
      maxOutputBytes: 1_000,
    });
    expect(result.dropped_bytes).toBe(6 + 20_000 * 19 + 5 - 1_000);
    expect(result.stdout).toMatch(/^first\n/);
    expect(result.stdout).toMatch(/\nlast\n$/);
    expect(result.stdout).toContain(`${result.dropped_bytes} bytes dropped`);
    expect(result.stdout).not.toContain("\uFFFD");
    expect(result.stdout.length).toBeLessThan(1_100);
  });

  execTest("output is heard while the command runs", async (sandbox) => {
    const heard: string[] = [];
    await sandbox.exec({
      command: "echo one; sleep 0.2; echo two >&2",
      onOutput({ stream, text }) {
        heard.push(`${stream}:${text}`);
        throw new Error("a bad listener");
      },
    });
    expect(heard).toEqual(["stdout:one\n", "stderr:two\n"]);
  });

  execTest("its time limit ends a command with all that it started", async (sandbox) => {
    const started = performance.now();
    const result = await sandbox.exec({
      command: "trap '' TERM; (sleep 2; touch survived) & echo begun; sleep 30",
      timeoutMs: 300,
    });
    expect(result).toMatchObject({ exit_code: null, timed_out: true, stdout: "begun\n" });
    expect(performance.now() - started).toBeLessThan(5_000);
    await setTimeout(2_500);
    expect(await sandbox.exists("survived")).toBe(false);
  });

  execTest("an abort ends it too, and resolves; before the start it rejects", async (sandbox) => {
    const controller = new AbortController();
    const running = sandbox.exec({
      command: "echo begun; sleep 30",
      signal: controller.signal,
      onOutput: () => controller.abort(new Error("enough")),
    });
    expect(await running).toMatchObject({ exit_code: null, timed_out: false, stdout: "begun\n" });
    await expect(sandbox.exec({ command: "touch started", signal: controller.signal })).rejects.toThrow(
      "enough",
    );
    expect(await sandbox.exists("started")).toBe(false);
  });

  execTest("what is left in the background ends with its command", async (sandbox) => {
    const started = performance.now();
    const result = await sandbox.exec({
      command: "(sleep 1.5; touch one) & (sleep 1.5; touch two) >/dev/null 2>&1 & echo done",
    });
    expect(result).toMatchObject({ exit_code: 0, stdout: "done\n" });
    expect(performance.now() - started).toBeLessThan(1_400);
    await setTimeout(2_000);
    expect([await sandbox.exists("one"), await sandbox.exists("two")]).toEqual([false, false]);
  });

  execTest("many commands run side by side", async (sandbox) => {
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, index) => sandbox.exec({ command: `sleep 0.05; echo ${index}` })),
    );
    expect(results.map(({ stdout }) => stdout.trim())).toEqual(results.map((_, index) => String(index)));
  });

  execTest("nobody is asked for anything", async (sandbox) => {
    const result = await sandbox.exec({ command: 'echo "$PAGER $GIT_PAGER $GIT_TERMINAL_PROMPT"' });
    expect(result.stdout).toBe("cat cat 0\n");
  });

  execTest("closing ends what still runs", async (sandbox) => {
    const running = sandbox.exec({ command: "sleep 30" });
    await setTimeout(200);
    await sandbox.close();
    expect(await running).toMatchObject({ exit_code: null, timed_out: false });
  });
}
