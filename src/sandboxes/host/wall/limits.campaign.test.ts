import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { runProcess } from "../exec/exec.ts";
import { createFolder, openWalled, wallTest } from "./walled.suite.ts";

const folder = await createFolder();
const limits = { processes: 64, memoryMb: 256 };

wallTest(
  "a command cannot exceed its process limit, and the machine can still start processes",
  async ({ skip }) => {
    const { run, sandbox } = await openWalled(folder, { limits });
    const { description = "" } = (await sandbox.isolation?.()) ?? {};
    skip(
      !description.includes("64 processes"),
      "Nothing counts processes here: root without control groups.",
    );
    const { stdout, stderr } = await run(
      "(i=0; while [ $i -lt 300 ]; do sleep 30 & i=$((i+1)); done); ls /proc | grep -c '^[0-9]'",
    );
    expect(stderr).toMatch(/fork/i);
    expect(Number(stdout.trim() || 0)).toBeLessThan(70);
    expect((await run("bomb() { bomb | bomb & }; bomb; sleep 0.5")).duration_ms).toBeLessThan(20_000);
    expect((await run("echo fine")).stdout).toBe("fine\n");
  },
);

wallTest(
  "a command cannot exceed its memory limit, in processes or in files of /tmp and /dev/shm",
  async () => {
    const { run } = await openWalled(folder, { limits });
    const grown = await run(
      `"${process.execPath}" -e 'const all = []; for (;;) all.push(Buffer.alloc(16777216, 1))' 2>/dev/null && echo done`,
    );
    expect(grown.stdout).toBe("");
    expect(grown.timed_out).toBe(false);
    const filled = await run("head -c 400M /dev/zero > /dev/shm/a && echo done");
    expect(filled.stdout).toBe("");
    expect((await run("echo fine")).stdout).toBe("fine\n");
  },
);

test("a command that floods its output is stopped, and its output stays bounded", async () => {
  const result = await runProcess({
    program: "yes",
    args: ["flood"],
    folder,
    environment: { PATH: "/usr/bin:/bin" },
    timeoutMs: 60_000,
    maxOutputBytes: 1_000,
    floodBytes: 1_000_000,
    signals: [],
  });
  expect(result).toMatchObject({ exit_code: null, timed_out: false });
  expect(result.stderr).toContain("it wrote more than 1000000 bytes");
  expect(result.stdout.length).toBeLessThan(1_100);
});

wallTest("a command gets SIGTERM before SIGKILL, and leaves no process", async () => {
  const { run } = await openWalled(folder);
  const polite = await run(`trap 'echo ending; exit 5' TERM; echo begun; while :; do sleep 0.05; done`, {
    timeoutMs: 4_000,
  });
  expect(polite).toMatchObject({ exit_code: null, timed_out: true, stdout: "begun\nending\n" });
  const mark = `3${process.pid}`;
  await run(`setsid sh -c 'trap "" TERM; sleep ${mark}' & env -i sleep ${mark} & sleep 0.2`);
  expect(processesWith(mark)).toEqual([]);
  await run(`trap "" TERM; setsid sleep ${mark} & sleep ${mark}`, { timeoutMs: 500 });
  await expect.poll(() => processesWith(mark)).toEqual([]);
});

wallTest("exit code, signal and descriptors are the same with and without isolation", async () => {
  const { run, sandbox } = await openWalled(folder);
  expect((await run("exit 7")).exit_code).toBe(7);
  expect((await run("kill -9 $$")).exit_code).toBe(137);
  expect((await run("kill -TERM $$")).exit_code).toBe(143);
  expect(await sandbox.exec({ command: ["sleep", "abc"] })).toMatchObject({ exit_code: 1 });
  expect(
    (await run("ls -l /proc/self/fd | grep -vE '(/dev/null|(socket|pipe):.*|/proc/[0-9]+/fd)$'")).stdout,
  ).toMatch(/^total \d+\n$/);
});

wallTest("a command leaves no control group and no folder", async () => {
  const { run, sandbox } = await openWalled(folder);
  await run("sleep 0.1 & true");
  await sandbox.close();
  for (const controller of ["pids", "memory", "unified", ""]) {
    expect(
      groupsIn(`/sys/fs/cgroup/${controller}`).filter((name) => name.startsWith(`kit-${process.pid}-`)),
    ).toEqual([]);
  }
});

function groupsIn(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

function processesWith(argument: string): readonly string[] {
  return readdirSync("/proc").filter(
    (name) => /^\d+$/.test(name) && commandOf(name).includes(`sleep\0${argument}\0`),
  );
}

function commandOf(id: string): string {
  try {
    return readFileSync(`/proc/${id}/cmdline`, "latin1");
  } catch {
    return "";
  }
}
