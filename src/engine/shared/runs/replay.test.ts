import fc from "fast-check";
import { expect, test } from "vitest";
import { type CallKind, createReplay, type JournalEntry } from "./run-journal.ts";

const kinds: readonly CallKind[] = ["step", "sleep", "wait", "now", "uuid", "dispatch"];
const requests = fc.array(fc.record({ kind: fc.constantFrom(...kinds), name: fc.string() }), {
  maxLength: 30,
});

function recorded(calls: readonly { kind: CallKind; name: string }[]): JournalEntry[] {
  return calls.map(({ kind, name }, index) => ({
    position: index + 1,
    kind,
    name,
    outcome: { state: "done", ended_as: index + 1, value: null },
  }));
}

test("the same calls find their entries in order, and the replay is behind until the last one", () => {
  fc.assert(
    fc.property(requests, fc.nat(), (calls, cut) => {
      const recordedCount = cut % (calls.length + 1);
      const entries = recorded(calls.slice(0, recordedCount));
      const replay = createReplay(entries);
      for (const [index, { kind, name }] of calls.entries()) {
        expect(replay.hasRecorded).toBe(index < recordedCount);
        expect(replay.ask(kind, name)).toEqual({ position: index + 1, recorded: entries[index] });
      }
      expect(replay.hasRecorded).toBe(false);
      replay.checkEnd();
    }),
  );
});

test("another kind or name is a mismatch that names the recorded and the requested call", () => {
  fc.assert(
    fc.property(
      requests,
      fc.nat(),
      fc.record({ kind: fc.constantFrom(...kinds), name: fc.string() }),
      (calls, at, other) => {
        fc.pre(calls.length > 0);
        const index = at % calls.length;
        const recordedCall = calls[index];
        fc.pre(
          recordedCall !== undefined &&
            (recordedCall.kind !== other.kind || recordedCall.name !== other.name),
        );
        const replay = createReplay(recorded(calls));
        for (const { kind, name } of calls.slice(0, index)) replay.ask(kind, name);
        expect(() => replay.ask(other.kind, other.name)).toThrow(
          expect.objectContaining({
            code: "replay_mismatch",
            meta: {
              position: index + 1,
              recorded: expect.stringContaining(recordedCall?.kind ?? ""),
              asked: expect.stringContaining(other.kind),
            },
          }),
        );
      },
    ),
  );
});

test.each([
  [{ kind: "step", name: "a" }, { kind: "dispatch", name: "a" }, ['step "a"', 'dispatch "a"']],
  [{ kind: "now", name: "" }, { kind: "uuid", name: "" }, ["now", "uuid"]],
] as const)(
  "an entry differs from a call of the same name and another kind: %j, %j",
  (was, now, [before, after]) => {
    expect(() => createReplay(recorded([was])).ask(now.kind, now.name)).toThrow(
      `Position 1 of the run was recorded as ${before}, but the workflow's code now asks for ${after}.`,
    );
  },
);

test("positions keep their numbers if some of them were not recorded", () => {
  const [first, second, third] = recorded([
    { kind: "step", name: "a" },
    { kind: "step", name: "b" },
    { kind: "step", name: "c" },
  ]);
  const replay = createReplay([first, third].filter((entry) => entry !== undefined));
  expect(replay.ask("step", "a").recorded).toBe(first);
  expect(replay.ask("step", "anything")).toEqual({ position: 2, recorded: undefined });
  expect(replay.hasRecorded).toBe(true);
  expect(() => replay.checkEnd()).toThrow(/Position 3 .*the end of the run/);
  expect(replay.ask("step", "c").recorded).toBe(third);
  expect(second?.position).toBe(2);
});

test("after a change of the code at any place a run stays on its branch in every replay, and the call can be removed later", () => {
  const calls = fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 12 });
  fc.assert(
    fc.property(calls, fc.nat(), fc.nat(), (names, reachedSeed, placeSeed) => {
      const reached = reachedSeed % (names.length + 1);
      const changeAt = placeSeed % (names.length + 1);
      const journal = recorded(names.slice(0, reached).map((name) => ({ kind: "step", name })));
      const isNew = changeAt >= reached;
      const run = (how: "with the call" | "without it"): void => {
        const ended: number[] = [];
        const replay = createReplay([...journal], ({ ended_as }) => ended.push(ended_as));
        const ask = (name: string): void => {
          const { position, recorded: entry } = replay.ask("step", name);
          if (entry === undefined)
            journal.push(entryOf({ kind: "step", name, position }, journal.length + 1));
        };
        const change = (): void => {
          const answer = how === "without it" ? undefined : replay.patched("change");
          if (answer?.is === "new")
            journal.push(
              entryOf({ kind: "patch", name: "change", position: answer.position }, journal.length + 1),
            );
          if (answer !== undefined) expect(answer.is === "new" || answer.value).toBe(isNew);
          if (isNew) ask("instead");
        };
        for (const [index, name] of names.entries()) {
          if (index === changeAt) change();
          ask(name);
          // The answer holds for the whole run.
          if (index > changeAt && how === "with the call")
            expect(replay.patched("change")).toEqual({ is: "known", value: isNew });
        }
        if (changeAt === names.length) change();
        replay.checkEnd();
        expect(replay.hasRecorded).toBe(false);
      };
      run("with the call");
      run("with the call");
      run("without it");
      run("with the call");
    }),
  );
});

test("the end of a marker without a call is passed on, because later ends wait for it", () => {
  const marker = entryOf({ kind: "patch", name: "change", position: 1 }, 1);
  const step = entryOf({ kind: "step", name: "a", position: 2 }, 2);
  const passed: number[] = [];
  createReplay([marker, step], ({ ended_as }) => passed.push(ended_as)).ask("step", "a");
  expect(passed).toEqual([1]);
});

function entryOf(head: Omit<JournalEntry, "outcome">, ended_as: number): JournalEntry {
  return { ...head, outcome: { state: "done", ended_as, value: null } };
}
