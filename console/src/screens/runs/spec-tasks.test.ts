import { expect, test } from "vitest";
import type { KitEvent, SpecRunResult, SpecTaskProgress, Verdict } from "../../../../src/client/index.ts";
import { foldTask, listTasks, readPlan, type SpecTasks } from "./spec-tasks.ts";
import { describeQuestion, readQuestion } from "./task-question.ts";

const verdict = (end: Verdict["end"], duration_ms: number): Verdict => ({
  ...{ end, duration_ms, base: "b", tree: "cafe0123456789", criteria: [], reasons: [], notes: [] },
  ...{ changed: [], runner: "", isolated: true, runs: [] },
});

const progress = (more: Partial<SpecTaskProgress>): SpecTaskProgress => ({
  ...{ task: "1.2", title: "Discounts", path: "tasks.md", line: 4, criteria: ["cart#1.2"] },
  ...{ state: "working", attempt: 1, cost: 0, ...more },
});

const fold = (...all: readonly Partial<SpecTaskProgress>[]): SpecTasks =>
  all
    .map((more) => ({ type: "log", data: { spec_task: progress(more) } }) as unknown as KitEvent)
    .reduce(foldTask, new Map());

test("the newest progress of a task counts, and a verdict that another one follows is kept with its attempt", () => {
  const [refused, asked] = [verdict("refused", 10), verdict("ask", 20)];
  const tasks = fold(
    { attempt: 0 },
    { state: "judging" },
    { state: "working", verdict: refused },
    { state: "judging", attempt: 2, verdict: refused },
    { state: "waiting", attempt: 2, verdict: asked, diff: "the change" },
    { state: "closed", attempt: 2, verdict: asked, commit: "c" },
  );
  expect(tasks.get("1.2")).toEqual({
    ...progress({ state: "closed", attempt: 2, verdict: asked, commit: "c", diff: "the change" }),
    judged: 2,
    earlier: [{ attempt: 1, verdict: refused }],
  });
});

test("while the next attempt is judged, the verdict is still about the last one", () => {
  const refused = verdict("refused", 10);
  const tasks = fold({ verdict: refused }, { state: "judging", attempt: 2, verdict: refused });
  expect(tasks.get("1.2")).toMatchObject({ attempt: 2, judged: 1, earlier: [] });
});

test("the tasks stand in the order of the plan, with those that have not begun, and end as the result says", () => {
  const criteria = [{ id: "cart#1.1", text: "WHEN", path: "requirements.md", line: 7 }];
  const plan = readPlan({
    tasks: [
      { number: "1.1", title: "Add up", path: "tasks.md", line: 3, criteria },
      { number: "1.2", title: "Discounts", path: "tasks.md", line: 4, criteria: [] },
      "broken",
    ],
  });
  const begun = fold({ diff: "the change", state: "waiting" });
  expect(listTasks(begun, { plan, result: undefined })).toMatchObject([
    { task: "1.1", title: "Add up", state: "open", criteria: ["cart#1.1"] },
    { task: "1.2", state: "waiting" },
  ]);
  const result = { tasks: [progress({ state: "denied" })] } as unknown as SpecRunResult;
  expect(listTasks(begun, { plan: [], result })).toMatchObject([{ state: "denied", diff: "the change" }]);
});

test("the events of other workflows are no tasks", () => {
  const event = { type: "log", data: { spec_task: "text" } } as unknown as KitEvent;
  expect(foldTask(new Map(), event).size).toBe(0);
});

test("a signal of kit.spec is the question about a task; the same name in another workflow is not", () => {
  const item = {
    ...({ kind: "signal", requested_at: "", run_id: "r", position: 1 } as const),
    ...{ workflow: "kit.spec", signal: "approve 2 of all cafe01234567" },
    payload_start: '{"agent":"a","feature":"the \\"cart\\"","tasks":["2',
  };
  expect(readQuestion(item, item.signal)).toEqual({ task: "2 of all", tree: "cafe01234567" });
  expect(describeQuestion(item)).toBe('Task 2 of all of the "cart"');
  expect(describeQuestion({ ...item, payload_start: '{"feature":"ca' })).toBe("Task 2 of all");
  expect(describeQuestion({ ...item, workflow: "release" })).toBeUndefined();
});
