import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { testFolder } from "../testing/test-folder.ts";
import { underFileLock } from "./file-lock.ts";

function lockFile(): string {
  const folder = testFolder(onTestFinished);
  return join(folder, "it.lock");
}

test("work under one file never overlaps, also after an error", async () => {
  const file = lockFile();
  let [now, most, done] = [0, 0, 0];
  const work = async (): Promise<void> => {
    now += 1;
    most = Math.max(most, now);
    await setTimeout(5);
    now -= 1;
    done += 1;
    if (done === 2) throw new Error("It failed.");
  };
  const results = await Promise.allSettled(
    Array.from({ length: 5 }, () => underFileLock(file, { maxMs: 20_000 }, work)),
  );
  expect(results.filter(({ status }) => status === "rejected")).toHaveLength(1);
  expect([most, done]).toEqual([1, 5]);
});

test("a lock that another call holds is an error after the wait", async () => {
  const file = lockFile();
  await underFileLock(file, { maxMs: 1_000 }, async () => {
    await expect(underFileLock(file, { maxMs: 60 }, async () => undefined)).rejects.toMatchObject({
      code: "unavailable",
    });
  });
});

test("the lock of a killed process is free at once", async () => {
  const file = lockFile();
  const module = JSON.stringify(new URL("./file-lock.ts", import.meta.url).href);
  const script = `const { underFileLock } = await import(${module});
await underFileLock(${JSON.stringify(file)}, { maxMs: 1000 }, async () => { process.stdout.write("held"); await new Promise((done) => setTimeout(done, 60000)); });`;
  const holder = spawn(process.execPath, ["--input-type=module", "--eval", script]);
  await once(holder.stdout, "data");
  await expect(underFileLock(file, { maxMs: 50 }, async () => undefined)).rejects.toMatchObject({
    code: "unavailable",
  });
  holder.kill("SIGKILL");
  await once(holder, "exit");
  expect(await underFileLock(file, { maxMs: 50 }, async () => "free")).toBe("free");
});
