import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, afterEach, expect, test } from "vitest";
import { gate, handlers, untilAborted } from "../../cases/engine-check.ts";
import type { Engine } from "../../contract.ts";
import { createEmbeddedEngine } from "../create-embedded-engine.ts";

const root = mkdtempSync(join(tmpdir(), "kit-shared-runs-"));
const opened: Engine[] = [];
afterEach(async () => {
  for (const engine of opened.splice(0).toReversed()) await engine.drain({ timeoutMs: 0 });
});
afterAll(() => rmSync(root, { recursive: true }));

function open(folder: string): Engine {
  const engine = createEmbeddedEngine({ folder, limits: { pollMs: 5, running: 1 } });
  opened.push(engine);
  return engine;
}

/** An engine that works on a folder, and another one that only accepts work. */
async function openTwo(run: Parameters<typeof handlers>[0]["run"] & {}): Promise<readonly [Engine, Engine]> {
  const folder = mkdtempSync(join(root, "two-"));
  const working = open(folder);
  await working.start(handlers({ run }));
  return [working, open(folder)];
}

test("a run that another process accepts is executed here, and signalled and awaited there", async () => {
  const [, acceptor] = await openTwo(async (context) => [
    await context.step("first", () => 1),
    await context.waitFor("go"),
  ]);
  const { run_id } = await acceptor.startRun({ workflow: "w", payload: {} });
  const ended = acceptor.awaitRun(run_id);
  await acceptor.signal(run_id, { name: "go", payload: "now" });
  expect(await ended).toMatchObject({ status: "completed", result: [1, "now"] });
});

test("a running run is cancelled from another process", async () => {
  const begun = gate();
  const [, acceptor] = await openTwo(async (context) => {
    await context.step("long", async (step) => {
      begun.open();
      await untilAborted(step);
    });
  });
  const { run_id } = await acceptor.startRun({ workflow: "w", payload: {} });
  await begun.opened;
  const ended = acceptor.awaitRun(run_id);
  expect(await acceptor.cancelRun(run_id)).toBe(true);
  expect((await ended)?.status).toBe("cancelled");
});

test("a reader of a run's events finishes when another process cancels the run", async () => {
  const begun = gate();
  const [working, acceptor] = await openTwo(async (context) => {
    begun.open();
    await context.step("long", untilAborted);
  });
  const first = await acceptor.startRun({ workflow: "w", payload: 1 });
  await begun.opened;
  const second = await acceptor.startRun({ workflow: "w", payload: 2 });
  const following = [second, first].map(async ({ run_id }) => {
    for await (const event of working.events.subscribe(`run/${run_id}`)) expect(event).toBeUndefined();
  });
  expect(await acceptor.cancelRun(second.run_id)).toBe(true);
  await following[0];
  expect(await acceptor.cancelRun(first.run_id)).toBe(true);
  await following[1];
});

test("while the store cannot be written a run waits, and no step is done twice", async () => {
  const folder = mkdtempSync(join(root, "locked-"));
  const engine = open(folder);
  const done: string[] = [];
  const inStep = gate();
  const goOn = gate();
  await engine.start(
    handlers({
      run: async (context) => {
        await context.step("first", async () => {
          inStep.open();
          await goOn.opened;
          done.push("first");
        });
        await Promise.all([
          context.step("second", () => done.push("second")),
          context.step("third", () => done.push("third")),
        ]);
      },
    }),
  );
  const { run_id } = await engine.startRun({ workflow: "w", payload: {} });
  await inStep.opened;
  const other = new DatabaseSync(join(folder, "engine.db"));
  other.exec("BEGIN IMMEDIATE");
  goOn.open();
  const refused = await engine.startRun({ workflow: "w", payload: {} }).catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: "store_unavailable" });
  other.exec("ROLLBACK");
  other.close();
  expect((await engine.awaitRun(run_id))?.status).toBe("completed");
  expect(done).toEqual(["first", "second", "third"]);
});
