import fc from "fast-check";
import { expect, test } from "vitest";
import { rounds } from "../../testing/campaign.suite.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { changedLines } from "./changed-lines.ts";

test("spaces, tabs and line ends are no change; a line that is added, removed or moved is one", () => {
  expect(changedLines("if (a) {\n  b();\n}\n", "if(a){\r\n\tb();\r\n}")).toBeUndefined();
  expect(changedLines("a\nb\n", "a\n\nb\n")).toEqual({ added: 1, removed: 0 });
  expect(changedLines("a\nb\nc\n", "b\nc\na\n")).toEqual({ added: 1, removed: 1 });
  expect(changedLines("", "a\n")).toEqual({ added: 1, removed: 0 });
});

test("two large files without a common line take little time", () => {
  const text = (word: string): string => Array.from({ length: 50_000 }, (_, at) => `${word}${at}\n`).join("");
  const began = process.cpuUsage();
  expect(changedLines(text("a"), text("b"))).toEqual({ added: 50_000, removed: 50_000 });
  expect(process.cpuUsage(began).user / 1_000).toBeLessThan(2_000);
});

test("two texts differ exactly where git diff -w finds a difference, and never by more lines", async () => {
  await using repository = await createTemporaryRepository();
  await repository.init();
  const line = fc.constantFrom("a", " a", "b", "c", "", "a b", "ab");
  const text = fc.array(line, { maxLength: 8 }).map((lines) => lines.map((each) => `${each}\n`).join(""));
  let time = 1_000_000;
  await fc.assert(
    fc.asyncProperty(text, text, async (before, after) => {
      await repository.write("a.ts", before);
      time += 100;
      await repository.commit("before", time);
      await repository.write("a.ts", after);
      await repository.commit("after", time + 50);
      const [added = 0, removed = 0] = (await repository.git("diff", "-w", "--numstat", "HEAD~1", "HEAD"))
        .split("\t")
        .map(Number);
      const lines = changedLines(before, after);
      expect(lines !== undefined).toBe(added + removed > 0);
      expect((lines?.added ?? 0) - (lines?.removed ?? 0)).toBe(added - removed);
      expect(lines?.added ?? 0).toBeLessThanOrEqual(added);
    }),
    { numRuns: rounds(8, 60) },
  );
});
