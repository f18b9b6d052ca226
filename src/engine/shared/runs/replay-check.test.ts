import { expect, test } from "vitest";
import type { EngineHandlers } from "../../contract.ts";
import { checkReplay, type OpenRun } from "./replay-check.ts";
import type { JournalEntry } from "./run-journal.ts";

/** A run with a journal of steps; missing steps had not ended when it was read. */
function openRun(names: readonly (string | undefined)[], more: readonly JournalEntry[] = []): OpenRun {
  const entries = names.flatMap((name, index): JournalEntry[] =>
    name === undefined ? [] : [entry({ position: index + 1, kind: "step", name }, index + 1)],
  );
  return {
    run: {
      id: 1,
      run_id: "run_1",
      workflow: "flow",
      status: "waiting",
      crashes: 0,
      idempotency_key: null,
      accepted_at: 0,
      started_at: 0,
      ended_at: null,
      problem: null,
      error: null,
      payload: "{}",
      result: null,
      owner: "workflow/flow",
      trace: null,
      parent: null,
    },
    entries: [...entries, ...more],
    load: (stored) => JSON.parse(stored),
  };
}

function entry(head: Omit<JournalEntry, "outcome">, ended_as: number): JournalEntry {
  return { ...head, outcome: { state: "done", ended_as, value: JSON.stringify(ended_as) } };
}

const check = (open: OpenRun, perform: EngineHandlers["run"]) =>
  checkReplay(open, perform, { patienceMs: 200 });

test("no step runs, and the code gets the recorded results", async () => {
  const seen: unknown[] = [];
  const verdict = await check(openRun(["a", "b"]), async (context) => {
    seen.push(await context.step("a", () => seen.push("a ran")));
    seen.push(await context.step("b", () => seen.push("b ran")));
    await context.step("c", () => seen.push("c ran"));
  });
  expect(verdict).toEqual({ outcome: "matches" });
  expect(seen).toEqual([1, 2]);
});

test("the verdict is unclear for code that waits for something unrecorded, or for a call that had not ended", async () => {
  const world = await check(openRun(["a", "b"]), async (context) => {
    await context.step("a", () => 1);
    await new Promise(() => undefined);
  });
  expect(world).toMatchObject({ outcome: "unclear", before: { position: 2, name: "b" } });
  const cutOff = await check(openRun(["a", undefined, "c"]), async (context) => {
    for (const name of ["a", "b", "c"]) await context.step(name, () => 1);
  });
  expect(cutOff).toMatchObject({ outcome: "unclear", before: { position: 3, name: "c" } });
  const sideBySide = await check(openRun(["a", undefined, "c"]), async (context) => {
    await Promise.all(["a", "b", "c"].map((name) => context.step(name, () => 1)));
  });
  expect(sideBySide).toEqual({ outcome: "matches" });
});

test("a mismatch counts even if the code catches it, and a recorded failure is not a fault of the code", async () => {
  const lookedPast = await check(openRun(["a", "b"]), async (context) => {
    await context.step("other", () => 1).catch(() => undefined);
    return "fine";
  });
  expect(lookedPast).toMatchObject({ outcome: "mismatch", error: { meta: { position: 1 } } });
  const failed: JournalEntry = {
    position: 2,
    kind: "step",
    name: "b",
    outcome: { state: "failed", ended_as: 2, value: JSON.stringify({ code: "forbidden", message: "No." }) },
  };
  const flow: EngineHandlers["run"] = async (context) => {
    await context.step("a", () => 1);
    await context.step("b", () => 1);
  };
  expect(await check(openRun(["a"], [failed]), flow)).toEqual({ outcome: "matches" });
});

test("a run with the marker of a patch matches code without the call, and a run without it does not", async () => {
  const marked = openRun(
    ["a"],
    [
      entry({ position: 2, kind: "patch", name: "change" }, 2),
      entry({ position: 3, kind: "step", name: "new" }, 3),
    ],
  );
  const cleaned: EngineHandlers["run"] = async (context) => {
    await context.step("a", () => 1);
    await context.step("new", () => 1);
    await context.waitFor("go");
  };
  expect(await check(marked, cleaned)).toEqual({ outcome: "matches" });
  expect(await check(openRun(["a", "old"]), cleaned)).toMatchObject({
    outcome: "mismatch",
    error: { meta: { position: 2 } },
  });
  const both: EngineHandlers["run"] = async (context) => {
    await context.step("a", () => 1);
    await context.step((await context.patched("change")) ? "new" : "old", () => 1);
  };
  expect(await check(marked, both)).toEqual({ outcome: "matches" });
  expect(await check(openRun(["a", "old"]), both)).toEqual({ outcome: "matches" });
});
