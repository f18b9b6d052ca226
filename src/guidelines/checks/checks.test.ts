import fc from "fast-check";
import { expect, test } from "vitest";
import { readGuidelines } from "../read-guidelines.ts";
import { findRules, listRules, listUnchecked } from "./list-rules.ts";
import { parseFindings } from "./parse-findings.ts";

const read = (files: Readonly<Record<string, string>>) =>
  Object.entries(files).flatMap(([path, text]) => readGuidelines({ path, text }).records);
const records = read({
  "AGENTS.md":
    "# Shop\n\nA shop.\n\n## Money & tax\n\nWhole cents.\n\n## Tests\n\nBeside.\n\n## Tests\n\nFast.\n\n## !\n\nCare.\n",
  "CLAUDE.md": "# Shop\n\n## Tests\n\nBeside.\n",
  ".cursor/rules/style.mdc": "---\nglobs: src/**\n---\n# Style\n\nUse tabs.\n",
  ".cursor/rules/release.mdc": "---\ndescription: For releases\n---\n# Release\n\nTag it.\n",
});
const rules = listRules(records);
const same = (path: string): string => path;

test("a rule has the name of its file, or of its file and heading", () => {
  expect(rules.map(({ name }) => name)).toEqual([
    ...["AGENTS.md", "AGENTS.md#money-tax", "AGENTS.md#tests", "AGENTS.md#tests-2", "AGENTS.md#section"],
    ...["CLAUDE.md#tests", ".cursor/rules/style.mdc", ".cursor/rules/release.mdc"],
  ]);
  expect(findRules("./AGENTS.md#Money & Tax", rules, same)).toEqual([
    { id: records[1]?.id, name: "AGENTS.md#money-tax", title: "Money & tax", path: "AGENTS.md", line: 5 },
  ]);
  expect(findRules("AGENTS.md", rules, same)).toHaveLength(5);
  const linked = (path: string): string => (path === "GEMINI.md" ? "CLAUDE.md" : path);
  expect(findRules("GEMINI.md#tests", rules, linked)).toMatchObject([{ name: "CLAUDE.md#tests" }]);
});

test("a rule that does not exist is an error that names the nearest ones", () => {
  expect(() => findRules("AGENTS.md#mony-tax", rules, same)).toThrow(
    expect.objectContaining({
      code: "invalid_request",
      message: 'guidelines.check: no rule "AGENTS.md#mony-tax" was found; did you mean AGENTS.md#money-tax?',
      hint: "AGENTS.md has AGENTS.md, AGENTS.md#tests, AGENTS.md#tests-2, AGENTS.md#section.",
    }),
  );
  expect(() => findRules("docs/elsewhere.md", rules, same)).toThrow(/was found\.$/);
});

test("rules that no check covers are listed for some files, each text once, without those on request", () => {
  const names = (...args: readonly [ReadonlySet<string>, (readonly string[])?]): readonly string[] =>
    listUnchecked(records, ...args).map(({ name }) => name);
  const checked = new Set(findRules("AGENTS.md#tests", rules, same).map(({ id }) => id));
  expect(names(checked)).toEqual([
    ...["AGENTS.md", "AGENTS.md#money-tax", "AGENTS.md#tests-2", "AGENTS.md#section"],
    ...[".cursor/rules/style.mdc", ".cursor/rules/release.mdc"],
  ]);
  expect(names(checked, ["src/a.ts"])).not.toContain(".cursor/rules/release.mdc");
  expect(names(checked, ["docs/a.md"])).not.toContain(".cursor/rules/style.mdc");
});

const segment = fc.stringMatching(/^[A-Za-z0-9_.@:(), é-]{1,12}$/);
const path = fc
  .array(segment, { minLength: 1, maxLength: 4 })
  .map((parts) => parts.join("/").trim())
  .filter((text) => text !== "" && !text.startsWith("./"));
const message = fc.stringMatching(/^[A-Za-z][A-Za-z0-9 :().,-]{0,40}$/).map((text) => text.trim());
const number = fc.integer({ min: 1, max: 99_999 });

test("the remarks of a tool are found in its output, whatever the names of the files", () => {
  const forms: readonly ((place: string, line: number, column: number) => string)[] = [
    (place, line) => `${place}:${line}:`,
    (place, line, column) => `  ${place}:${line}:${column}:`,
    (place, line, column) => `./${place}:${line}:${column} -`,
    (place, line, column) => `${place}(${line},${column}):`,
  ];
  const remark = fc.record({ path, line: number, column: number, message, form: fc.constantFrom(...forms) });
  fc.assert(
    fc.property(fc.array(remark, { maxLength: 20 }), (remarks) => {
      const files = new Set(remarks.map((each) => each.path));
      // The beginning of a name that is the name of another file: no reader can tell.
      fc.pre(
        ![...files].some((one) =>
          [...files].some((other) => /^[:(]\d/.test(one.slice(other.length)) && one.startsWith(other)),
        ),
      );
      const output = remarks
        .map((each) => `${each.form(each.path, each.line, each.column)} ${each.message}\n1 problem\n`)
        .join("");
      const found = parseFindings(output, (file) => files.has(file));
      expect(found.map((each) => `${each.path}:${each.line}: ${each.message}`)).toEqual(
        remarks.map((each) => `${each.path}:${each.line}: ${each.message}`),
      );
    }),
  );
});

test("other output has no remarks, and takes linear time", () => {
  const isFile = (file: string): boolean => file === "a.ts";
  const stack =
    "Error: no\n    at node:internal/x:12:3\n    at /elsewhere/a.ts:3:1: x\na.ts:0: no line\na.ts:3:\n";
  expect(parseFindings(stack, isFile)).toEqual([]);
  const began = performance.now();
  for (const unit of [":1:", "(1,", "a.ts:", " -", "1:1 "]) parseFindings(unit.repeat(400_000), isFile);
  for (const unit of [":1:", "(1,", "a.ts:", " -", "1:1 "])
    parseFindings(`${unit.repeat(300)}\n`.repeat(500), isFile);
  expect(performance.now() - began).toBeLessThan(2_000);
  fc.assert(
    fc.property(fc.string({ maxLength: 200 }), (output) => {
      expect(parseFindings(output, () => true).length).toBeLessThanOrEqual(50);
    }),
  );
});
