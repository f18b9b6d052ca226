import fc from "fast-check";
import { expect, test } from "vitest";
import { tickTask } from "./tick-task.ts";

const at = (text: string, line: number): string => tickTask(text, { line, framework: "fw_a" });

test("a tick changes one character, in lists, numbered lists and headings, and keeps line ends", () => {
  expect(at("# Tasks\r\n\r\n- [ ] 1. Pay\r\n", 3)).toBe("# Tasks\r\n\r\n- [x] 1. Pay\r\n");
  expect(at("1) [-] Pay\n", 1)).toBe("1) [x] Pay\n");
  expect(at("\ufeff* [~]* Pay", 1)).toBe("\ufeff* [x]* Pay");
  expect(at("#### - [ ] 1.1 Pay\n", 1)).toBe("#### - [x] 1.1 Pay\n");
});

test("a ticked box stays, and a file keeps its letter", () => {
  expect(at("- [X] Pay\n- [ ] Ship\n", 1)).toBe("- [X] Pay\n- [ ] Ship\n");
  expect(at("- [X] Pay\n- [ ] Ship\n", 2)).toBe("- [X] Pay\n- [X] Ship\n");
  expect(tickTask("- [ ] T001 Pay\n", { line: 1, framework: "fw_d" })).toBe("- [X] T001 Pay\n");
  expect(tickTask("- [x] T001 Pay\n- [ ] T002\n", { line: 2, framework: "fw_d" })).toBe(
    "- [x] T001 Pay\n- [x] T002\n",
  );
});

test("a line without a box is refused", () => {
  for (const [text, line] of [
    ["- Pay\n", 1],
    ["- [link](a)\n", 1],
    ["- [ ] Pay\n", 0],
    ["- [ ] Pay\n", 7],
    ["", 1],
  ] as const)
    expect(() => at(text, line)).toThrow("has no box of a task");
});

test("no other character of any text differs", () => {
  const line = fc.oneof(
    fc.string(),
    fc.constantFrom("- [ ] a", "  - [x] b", "* [-] c", "3. [~] d", "```", "- [y] e"),
  );
  fc.assert(
    fc.property(fc.array(line), fc.constantFrom("\n", "\r\n", "\r"), fc.nat(8), (lines, end, number) => {
      const text = lines.join(end);
      try {
        const ticked = at(text, number);
        const different = [...ticked].filter((sign, index) => sign !== [...text][index]);
        expect(different.length).toBeLessThanOrEqual(1);
        expect(ticked.length).toBe(text.length);
      } catch (error) {
        expect(error).toMatchObject({ code: "invalid_request" });
      }
    }),
  );
});
