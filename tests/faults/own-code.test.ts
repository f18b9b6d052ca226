import { cp, rename, symlink } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { testFolder } from "../../src/testing/test-folder.ts";
import { createRandom } from "./seeded-random.ts";
import { createFaultProject } from "./service/fault-project.ts";
import { createKitProcess, type KitProcess, type KitProcessOptions } from "./service/kit-process.ts";
import { type Answer, send, untilSettled } from "./service/requests.ts";

const repository = join(import.meta.dirname, "../..");

/** A copy of the built package, which a test can damage. */
async function copyPackage(): Promise<string> {
  const folder = testFolder(onTestFinished);
  for (const name of ["bin", "dist", "package.json"])
    await cp(join(repository, name), join(folder, name), { recursive: true });
  await symlink(join(repository, "node_modules"), join(folder, "node_modules"));
  return folder;
}

async function begin(options: KitProcessOptions) {
  const project = await createFaultProject(createRandom(1));
  const kit = await createKitProcess(project.root, [], options);
  onTestFinished(async () => void (await kit.end("SIGKILL")));
  await kit.start();
  return { project, kit };
}

/** Sends inputs whose model calls tools, one that may be repeated and one that may not, and starts runs. */
async function accept({ url }: KitProcess, numbers: readonly number[]): Promise<readonly string[]> {
  const ids = numbers.map(async (number) => {
    const key = { "idempotency-key": `${number}` };
    const dispatch = await send(`${url}/agents/worker/w-${number}/dispatch`, { input: `#${number}` }, key);
    const run = await send(`${url}/workflows/order`, { payload: { number } }, key);
    expect([dispatch.status, run.status]).toEqual([202, 202]);
    return run.body.run_id as string;
  });
  return await Promise.all(ids);
}

async function ended({ url }: KitProcess, runs: readonly string[]): Promise<void> {
  await untilSettled(url);
  for (const run of runs) {
    let answer: Answer;
    do {
      await delay(50);
      answer = await send(`${url}/runs/${run}`);
    } while (!["completed", "failed", "cancelled"].includes(answer.body.status));
    expect(answer.body).toMatchObject({ status: "completed" });
  }
  const { body } = await send(`${url}/dispatches?limit=100`);
  expect(body.dispatches.map(({ status }: { status: string }) => status)).not.toContain("failed");
}

test("work that is accepted while the package is replaced is done, before or after the restart", async () => {
  const folder = await copyPackage();
  const { project, kit } = await begin({ launcher: join(folder, "bin/kit.mjs") });
  const chunks = join(folder, "dist/chunks");
  await rename(chunks, `${chunks}.old`);
  const runs = await accept(kit, [1, 2, 3, 4]);
  await delay(1_500);
  await rename(`${chunks}.old`, chunks);
  expect(await kit.end("SIGTERM")).toBe(0);
  await kit.start();
  await ended(kit, runs);
  for (const name of ["keep", "note"] as const)
    expect(
      project
        .effects(name)
        .map(({ call }) => Number(call.split("#")[1]))
        .sort(),
    ).toEqual(name === "keep" ? [1, 1, 3, 3] : [2, 2, 4, 4]);
});

test("work that a process with few file handles accepts is done", async () => {
  const { project, kit } = await begin({ fileLimit: 64 });
  const numbers = Array.from({ length: 12 }, (_, index) => index + 1);
  const runs: string[] = [];
  // In turn, because a client's connection needs a handle too.
  for (const number of numbers) runs.push(...(await accept(kit, [number])));
  await ended(kit, runs);
  expect(project.effects("keep").length + project.effects("note").length).toBe(24);
});
