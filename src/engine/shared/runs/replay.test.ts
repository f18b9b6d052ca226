import fc from "fast-check";
import { expect, test } from "vitest";
import { createReplay, type EntryKind, type JournalEntry } from "./replay.ts";

const kinds: readonly EntryKind[] = ["step", "sleep", "wait", "now", "uuid", "dispatch"];
const asks = fc.array(fc.record({ kind: fc.constantFrom(...kinds), name: fc.string() }), { maxLength: 30 });

function recorded(calls: readonly { kind: EntryKind; name: string }[]): JournalEntry[] {
  return calls.map(({ kind, name }, index) => ({
    position: index + 1,
    kind,
    name,
    outcome: { state: "done", ended_as: index + 1, value: null },
  }));
}

test("the same calls find their entries, in order, and are behind until the last", () => {
  fc.assert(
    fc.property(asks, fc.nat(), (calls, cut) => {
      const known = cut % (calls.length + 1);
      const entries = recorded(calls.slice(0, known));
      const replay = createReplay(entries);
      for (const [index, { kind, name }] of calls.entries()) {
        expect(replay.behind).toBe(index < known);
        expect(replay.ask(kind, name)).toEqual({ position: index + 1, recorded: entries[index] });
      }
      expect(replay.behind).toBe(false);
      replay.checkEnd();
    }),
  );
});

test("another kind or name is a mismatch that says what was recorded and what was asked", () => {
  fc.assert(
    fc.property(
      asks,
      fc.nat(),
      fc.record({ kind: fc.constantFrom(...kinds), name: fc.string() }),
      (calls, at, other) => {
        fc.pre(calls.length > 0);
        const place = at % calls.length;
        const was = calls[place];
        fc.pre(was !== undefined && (was.kind !== other.kind || was.name !== other.name));
        const replay = createReplay(recorded(calls));
        for (const { kind, name } of calls.slice(0, place)) replay.ask(kind, name);
        expect(() => replay.ask(other.kind, other.name)).toThrow(
          expect.objectContaining({
            code: "replay_mismatch",
            meta: {
              position: place + 1,
              recorded: expect.stringContaining(was?.kind ?? ""),
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
  "an entry is told from one of the same name and another kind: %j, %j",
  (was, now, [said, asked]) => {
    expect(() => createReplay(recorded([was])).ask(now.kind, now.name)).toThrow(
      `Position 1 of the run was recorded as ${said}, and the workflow now asks for ${asked}.`,
    );
  },
);

test("positions of which some were not recorded keep their numbers", () => {
  const [first, second, third] = recorded([
    { kind: "step", name: "a" },
    { kind: "step", name: "b" },
    { kind: "step", name: "c" },
  ]);
  const replay = createReplay([first, third].filter((entry) => entry !== undefined));
  expect(replay.ask("step", "a").recorded).toBe(first);
  expect(replay.ask("step", "anything")).toEqual({ position: 2, recorded: undefined });
  expect(replay.behind).toBe(true);
  expect(() => replay.checkEnd()).toThrow(/Position 3 .*the end of the run/);
  expect(replay.ask("step", "c").recorded).toBe(third);
  expect(second?.position).toBe(2);
});
