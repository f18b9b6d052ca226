import { text } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import { startProcess, stopOn, terminate } from "./start-process.ts";

function shell(script: string, hasInput = false) {
  const env = { PATH: "/usr/bin:/bin", GIVEN: "given" };
  return startProcess({ program: "/bin/sh", args: ["-c", script], env, hasInput });
}

test("a process gets only the given input and environment", async () => {
  process.env.KIT_TEST_NOT_PASSED_ON = "secret";
  const running = shell("cat; env", true);
  running.stdin?.end("input\n");
  const output = await text(running.stdout);
  delete process.env.KIT_TEST_NOT_PASSED_ON;
  expect(output).toMatch(/^input\n/);
  expect(output).toContain("GIVEN=given");
  expect(output).not.toContain("KIT_TEST_NOT_PASSED_ON");
  expect(await running.exited).toEqual({ code: 0, signal: null });
});

test("a program that does not exist rejects with the system's error, and has no output", async () => {
  const running = startProcess({ program: "/no/such/program", args: [], env: {} });
  await expect(running.exited).rejects.toMatchObject({ code: "ENOENT" });
  await running.closed;
  running.signal("SIGKILL");
  expect(running.pid).toBeUndefined();
});

test("a signal reaches the processes that a process has started", async () => {
  const running = shell("sleep 60 & sleep 60");
  running.signal("SIGTERM");
  expect(await running.exited).toEqual({ code: null, signal: "SIGTERM" });
  // The background process would hold the output open.
  await running.closed;
});

test("output that outlives its process is closed after a moment", async () => {
  const running = shell("sleep 60 & echo done");
  running.stdout.resume();
  await running.exited;
  const since = performance.now();
  await running.closeOutput(20);
  expect(performance.now() - since).toBeLessThan(10_000);
  running.signal("SIGKILL");
});

test("a process that was busy until then still reads what was written before it closes the output", async () => {
  const running = shell("(sleep 0.1; echo late; sleep 60) &");
  let text = "";
  running.stdout.on("data", (chunk) => {
    text += chunk;
  });
  await running.exited;
  const closed = running.closeOutput(50);
  const busyUntil = performance.now() + 1_000;
  while (performance.now() < busyUntil);
  await closed;
  expect(text).toBe("late\n");
  running.signal("SIGKILL");
});

test("a process is stopped once, for the first reason, and killed if it does not end", async () => {
  const running = shell("trap '' TERM; echo ready; while :; do sleep 0.05; done");
  await new Promise((resolve) => running.stdout.once("data", resolve));
  const caller = new AbortController();
  const stop = stopOn({ timeoutMs: 60_000, signals: [undefined, caller.signal] }, () => terminate(running));
  expect(stop.reason()).toBeUndefined();
  caller.abort();
  stop.now("flood");
  expect(stop.reason()).toBe("abort");
  expect(await running.exited).toEqual({ code: null, signal: "SIGKILL" });
  stop.release();
});

test("a process that ends in time is not stopped afterwards", async () => {
  let stopped = 0;
  const caller = new AbortController();
  const stop = stopOn({ timeoutMs: 10, signals: [caller.signal] }, () => {
    stopped += 1;
    return () => undefined;
  });
  stop.release();
  caller.abort();
  await setTimeout(20);
  expect(stopped).toBe(0);
});
