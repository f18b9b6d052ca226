import fc from "fast-check";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { readFrontMatter } from "../../specs/markdown/front-matter.ts";
import { scanMarkdown } from "../../specs/markdown/scan-markdown.ts";
import { rounds } from "../../testing/campaign.suite.ts";
import { toFrontMatter, toYamlScalar } from "./conversion-targets.ts";

test("plain words stay plain, everything else is quoted", () => {
  expect(toYamlScalar("fileMatch")).toBe("fileMatch");
  expect(toYamlScalar("yes")).toBe('"yes"');
  expect(toYamlScalar("*.ts")).toBe('"*.ts"');
  expect(toYamlScalar("a: b")).toBe('"a: b"');
  expect(toYamlScalar("")).toBe('""');
});

const texts = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.constantFrom(
    "---",
    "a\n---\nevil: true",
    "\u0085",
    "\ud800",
    "\ufeff",
    "null",
    "1.5",
    "~",
    "# x",
    "{a}",
    "- a",
    "'",
    "é",
  ),
);

test("a written value reads back the same, in YAML and in kit", () => {
  fc.assert(
    fc.property(texts, fc.array(texts, { minLength: 1 }), fc.boolean(), (...[name, paths, alwaysApply]) => {
      const block = toFrontMatter({ name, paths, fileMatchPattern: name, alwaysApply });
      const expected = { name, paths, fileMatchPattern: name, alwaysApply };
      const inside = block.slice(4, -4);
      expect(parse(inside)).toEqual(expected);
      const read = readFrontMatter(scanMarkdown(`${block}\n# T\n`));
      expect(read.data).toEqual(expected);
      expect(read.problems).toEqual([]);
    }),
    { numRuns: rounds(200, 2_000) },
  );
});
