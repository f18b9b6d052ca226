import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test, vi } from "vitest";
import { listenForInterrupt } from "./main.ts";

test("the first signal aborts the work, and a second one shortly after does not end the process", () => {
  vi.useFakeTimers();
  const interrupt = listenForInterrupt();
  try {
    process.emit("SIGTERM", "SIGTERM");
    process.emit("SIGINT", "SIGINT");
    expect(interrupt.signal.aborted).toBe(true);
    expect(interrupt.exitCode()).toBe(143);
    expect(interrupt.isCause(interrupt.signal.reason)).toBe(true);
    expect(interrupt.isCause(new Error("something else"))).toBe(false);
  } finally {
    interrupt.stop();
    // Else its listener would hear the signals of later tests.
    vi.runAllTimers();
    vi.useRealTimers();
  }
});

test("an abort without a signal is an error like any other", () => {
  const interrupt = listenForInterrupt();
  interrupt.stop();
  expect(interrupt.isCause(new DOMException("timeout", "AbortError"))).toBe(false);
  expect(process.listeners("SIGTERM")).not.toContain(interrupt.stop);
});

test("a signal that is forwarded while the process ends counts as the first one, and Node handles later ones again", () => {
  const before = process.listenerCount("SIGINT");
  vi.useFakeTimers();
  try {
    const interrupt = listenForInterrupt();
    process.emit("SIGINT", "SIGINT");
    interrupt.stop();
    // Without a listener Node would end the process by the signal, and its exit code would be lost.
    expect(process.listenerCount("SIGINT")).toBe(before + 1);
    process.emit("SIGINT", "SIGINT");
    vi.runAllTimers();
    expect(process.listenerCount("SIGINT")).toBe(before);
  } finally {
    vi.useRealTimers();
  }
});

test.each([
  ["SIGTERM", 143],
  ["SIGINT", 130],
] as const)("a command that does not end after %s is killed", async (signal, code) => {
  const module = JSON.stringify(new URL("main.ts", import.meta.url).href);
  const script = `import { listenForInterrupt } from ${module};
listenForInterrupt().insistAfter(50);
process.stdout.write("ready");
for (;;) await new Promise((resolve) => setImmediate(resolve));`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script]);
  await once(child.stdout, "data");
  child.kill(signal);
  expect(await once(child, "exit")).toEqual([code, null]);
});

test("a command that ends in time is not killed", () => {
  vi.useFakeTimers();
  try {
    const interrupt = listenForInterrupt();
    interrupt.insistAfter(5_000);
    process.emit("SIGTERM", "SIGTERM");
    interrupt.stop();
    expect(vi.getTimerCount()).toBe(1);
    vi.runAllTimers();
  } finally {
    vi.useRealTimers();
  }
});
