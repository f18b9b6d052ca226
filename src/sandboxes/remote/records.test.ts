import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { createMachineRecords } from "./records.ts";

const owner = { agent: "fixer", instance_id: "1", session: "default" };

/** A process that holds the lock of the session until it is killed. */
async function holdElsewhere(root: string): Promise<() => Promise<void>> {
  const code = `import { createMachineRecords } from ${JSON.stringify(join(import.meta.dirname, "records.ts"))};
    await createMachineRecords(${JSON.stringify(root)}, "e2b").exclusively(${JSON.stringify(owner)}, async () => {
      process.stdout.write("held");
      await new Promise((resolve) => setTimeout(resolve, 60_000));
    });`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
  return async () => {
    child.kill("SIGKILL");
    await once(child, "exit");
  };
}

test("openings of one session never overlap, and go on when the process of one is killed", async () => {
  const root = await mkdtemp(join(tmpdir(), "kit-records-"));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  const kill = await holdElsewhere(root);
  let [running, most, done] = [0, 0, 0];
  const openings = Array.from({ length: 6 }, () =>
    createMachineRecords(root, "e2b").exclusively(owner, async () => {
      running += 1;
      most = Math.max(most, running);
      await sleep(10);
      running -= 1;
      done += 1;
    }),
  );
  await sleep(150);
  expect(done).toBe(0);
  await kill();
  await Promise.all(openings);
  expect([most, done]).toEqual([1, 6]);
});

test("an opening that waits too long ends with what it waits for, and what to do", async () => {
  const root = await mkdtemp(join(tmpdir(), "kit-records-"));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  await holdElsewhere(root);
  const opening = createMachineRecords(root, "e2b").exclusively(owner, async () => undefined, 100);
  await expect(opening).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("another opening or pause of a machine of e2b"),
    hint: expect.stringContaining("end it"),
  });
});

test("the locks of many sessions take a fixed number of files", async () => {
  const root = await mkdtemp(join(tmpdir(), "kit-records-"));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  const records = createMachineRecords(root, "e2b");
  for (let at = 0; at < 200; at += 1)
    await records.exclusively({ ...owner, instance_id: String(at) }, async () => undefined);
  expect((await readdir(join(root, ".kit/machines/opening"))).length).toBeLessThanOrEqual(64);
});
