import fc from "fast-check";
import { RE2JS } from "re2js";
import { expect, test } from "vitest";
import { requiredTexts } from "./remote-search.ts";

test.each([
  ["createRemote", ["createRemote"]],
  ["foo\\.bar", ["foo.bar"]],
  ["TODO|FIXME", ["TODO", "FIXME"]],
  ["import .* from", ["import "]],
  ["colou?r", ["colo"]],
  ["ab+c", ["ab"]],
  ["a\\\\|b", ["a\\", "b"]],
  ["(a|b)c", []],
  ["[abc]d", []],
  ["x|.*", []],
  ["\\x41", []],
])("whatever matches %s holds one of %j", (pattern, texts) => {
  expect(requiredTexts(pattern, false)).toEqual(texts);
});

test("every match of a pattern contains one of its required texts", () => {
  const unit = fc.constantFrom(
    "a",
    "b",
    "k",
    "K",
    "s",
    ".",
    "*",
    "+",
    "?",
    "|",
    "\\.",
    "\\|",
    "\\\\",
    "\\w",
    "^",
    "$",
    "é",
  );
  const pattern = fc.array(unit, { minLength: 1, maxLength: 8 }).map((units) => units.join(""));
  const text = fc
    .array(fc.constantFrom("a", "b", "k", "K", "s", ".", "|", "\\", "é", "\u212A"), { maxLength: 8 })
    .map((units) => units.join(""));
  fc.assert(
    fc.property(pattern, text, fc.boolean(), (written, line, ignoreCase) => {
      let matches: boolean;
      try {
        matches = RE2JS.compile(written, ignoreCase ? RE2JS.CASE_INSENSITIVE : 0)
          .matcher(line)
          .find();
      } catch {
        return;
      }
      const texts = requiredTexts(written, ignoreCase);
      if (!matches || texts.length === 0) return;
      const fold = (value: string): string => (ignoreCase ? value.toLowerCase() : value);
      expect(texts.some((each) => fold(line).includes(fold(each)))).toBe(true);
    }),
    { numRuns: 2_000 },
  );
});
