import fc from "fast-check";
import { expect, test } from "vitest";
import { rounds } from "../../testing/campaign.suite.ts";
import { processorMs } from "../../testing/processor-time.ts";
import { readPlainFrontMatter } from "../data/safe-yaml.ts";
import { readFrontMatter, readYamlFrontMatter } from "./front-matter.ts";
import { scanMarkdown } from "./scan-markdown.ts";

const read = (text: string) => readFrontMatter(scanMarkdown(text));
const codes = (text: string) => read(text).problems.map((problem) => problem.code);

test("a text without front matter has none", () => {
  expect(read("# Title\n")).toEqual({ data: {}, raw: "", problems: [], bodyLine: 1 });
  expect(read("")).toEqual({ data: {}, raw: "", problems: [], bodyLine: 1 });
  expect(read("----\nnot: frontmatter\n----\n").data).toEqual({});
  expect(read("---js\nx\n---\n").data).toEqual({});
});

test("keys, lists and line ends of every kind are read", () => {
  expect(read("---\n---\n# T\n")).toEqual({ data: {}, raw: "", problems: [], bodyLine: 3 });
  expect(read("---\r\ninclusion: manual\r\n---\r\n# T\r\n").data).toEqual({ inclusion: "manual" });
  expect(read("---\rpaths:\r  - 'a/**'\r---\rx").data).toEqual({ paths: ["a/**"] });
  expect(read("---\nglobs:\nalwaysApply: false\n---\n").data).toEqual({ globs: null, alwaysApply: false });
  expect(read("---\nname: x\n...\n# T\n").data).toEqual({ name: "x" });
});

test("the raw text is kept as written", () => {
  expect(read("---\r\nglobs: *.ts\r\nx:  1 # why\r\n---\r\n").raw).toBe("globs: *.ts\r\nx:  1 # why");
});

test("globs that are not YAML are read literally", () => {
  const globs = (line: string) => {
    const { data, problems } = read(
      `---\ndescription: a: b\nglobs: ${line}\nalwaysApply: false\nodd-key: 7\n---\n`,
    );
    expect(problems).toEqual([]);
    expect(data).toMatchObject({ description: "a: b", alwaysApply: false, "odd-key": 7 });
    return data.globs;
  };
  expect(globs("*.ts,**/*.tsx")).toBe("*.ts,**/*.tsx");
  expect(globs("**/*.{ts,tsx}")).toBe("**/*.{ts,tsx}");
  expect(globs("*")).toBe("*");
  expect(globs("{a,b}/*.ts")).toBe("{a,b}/*.ts");
  expect(globs("[*.ts, **/*.{js,jsx}]")).toEqual(["*.ts", "**/*.{js,jsx}"]);
  expect(globs('["*.ts", *.tsx]')).toEqual(["*.ts", "*.tsx"]);
  expect(globs('"*.ts", "*.tsx"')).toBe('"*.ts", "*.tsx"');
  expect(globs("\n  - *.ts\n  - '**/*.tsx'")).toEqual(["*.ts", "**/*.tsx"]);
  expect(globs("@scope/*")).toBe("@scope/*");
});

test("an unreadable line is named, and the rest is kept", () => {
  const found = read("---\ninclusion: always\nkey: [unclosed\nname: x\n---\n# T\n");
  expect(found.data).toEqual({ inclusion: "always", name: "x" });
  expect(found.problems).toEqual([
    { code: "frontmatter_invalid", message: 'The value of "key" is not YAML.', line: 3, severity: "error" },
  ]);
  expect(codes("---\n- a\n- b\n---\n# T\n")).toEqual(["frontmatter_not_a_mapping"]);
  expect(read("---\njust text\n---\n# T\n")).toMatchObject({
    bodyLine: 1,
    problems: [{ code: "frontmatter_not_a_mapping", line: 2 }],
  });
  expect(codes("---\na: 1\na: 2\n---\n")).toEqual(["frontmatter_duplicate_key"]);
  expect(codes("---\na: 1\nglobs: *.x\na: 2\n---\n")).toEqual(["frontmatter_duplicate_key"]);
  expect(codes("---\na: {b: 1, b: 2}\n---\n")).toEqual(["frontmatter_duplicate_key"]);
  expect(codes("---\ninclusion: always\n# Title\n\nbody\n")).toEqual(["frontmatter_unterminated"]);
  expect(codes(`---\na: ${"x".repeat(33_000)}: y\n---\n`)).toEqual(["frontmatter_too_large"]);
});

test("a rule on the first line that nothing closes is a warning, keys below it make it an error", () => {
  expect(read("---\n\nText\n").problems).toMatchObject([{ severity: "warning", line: 1 }]);
  expect(read("---\nname: x\n").problems).toMatchObject([{ severity: "error", line: 1 }]);
});

test("aliases are never expanded and tags never run", () => {
  const level = (name: string, of: string) => `${name}: &${name} [${Array(9).fill(of).join(",")}]\n`;
  const bomb = `---\n${level("a", '"lol"')}${level("b", "*a")}${level("c", "*b")}---\n`;
  expect(codes(bomb)).toEqual(["frontmatter_invalid", "frontmatter_invalid"]);
  expect(codes("---\na: &a\n  self: *a\n---\n")).toEqual(["frontmatter_invalid"]);
  expect(codes("---\na: &x 1\nb: *x\n---\n")).toEqual(["frontmatter_invalid"]);
  expect(codes('---\nrun: !!js/function "function(){}"\n---\n')).toEqual(["frontmatter_invalid"]);
});

test("prototype keys do no harm", () => {
  const { data } = read("---\n__proto__:\n  polluted: yes\nx: {__proto__: {y: 1}}\ninclusion: always\n---\n");
  expect(Object.keys(data)).toEqual(["x", "inclusion"]);
  expect(Object.hasOwn(data.x as object, "__proto__")).toBe(false);
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  expect(Object.keys(read("---\n__proto__: *.ts\nx: y\n---\n").data)).toEqual(["x"]);
});

test.each([
  ["20,000 flow sequences", `${"[".repeat(15_000)}${"]".repeat(15_000)}`],
  ["20,000 block sequences", "- ".repeat(10_000)],
  ["20,000 complex keys", "? ".repeat(10_000)],
  ["indented mappings", Array.from({ length: 300 }, (_, index) => `${" ".repeat(index)}a:`).join("\n")],
  ["indented sequences", Array.from({ length: 300 }, (_, index) => `${" ".repeat(index)}-`).join("\n")],
  [
    "30,000 keys of one mapping",
    `{${Array.from({ length: 6_000 }, (_, index) => index.toString(36)).join(",")}}`,
  ],
  ["aliases", `a: &a {x: 0}\nb: {<<: [${"*a, ".repeat(7_500)}*a]}`],
  ["blank lines", `${"\n".repeat(30_000)}x`],
  ["keys without values", "a:\n".repeat(10_000)],
  ["distinct keys", Array.from({ length: 5000 }, (_, index) => `${index.toString(36)}: *`).join("\n")],
  ["comments", "# a\n".repeat(7_500)],
  ["quotes", `a: ${'"'.repeat(30_000)}`],
  ["a scalar on many lines", `a: ${"b\n  ".repeat(7_500)}`],
  ["anchors", `a: ${"&a ".repeat(10_000)}`],
  ["tags", `a: ${"!a ".repeat(10_000)}`],
  ["colons", `a: ${": ".repeat(7_500)}`],
  ["spaces", `a:${" ".repeat(30_000)}`],
  ["braces", `globs: *${"{a}".repeat(10_000)}`],
])("hostile front matter takes linear time: %s", (_name, body) => {
  const start = processorMs();
  read(`---\n${body}\n---\n# T\n`);
  expect(processorMs() - start).toBeLessThan(5_000);
});

const scalars = fc.oneof(
  fc.constantFrom(
    "true",
    "True",
    "false",
    "null",
    "~",
    "yes",
    "0x1F",
    "1e3",
    "",
    "|",
    "- a",
    "*.ts",
    "**/*.{ts,tsx}, *.js",
    "*{a",
    "*a:",
    "*a #b",
    "*",
    ".github/*",
    ".inf",
    "['a', \"b, c\"]",
    "[ 'a' ]",
    "[]",
    "['a'",
    "&a b",
    "a: b",
    "a #b",
    "a#b",
    "a:",
    "a:b",
    "/x",
    "_",
    "'a'",
    '"b c"',
    "'it''s'",
    '"\\n"',
    "[a]",
    "{a}",
    "2024-01-01",
    "a\tb",
    "a \t",
  ),
  fc.string({ maxLength: 12 }),
  fc.string({ unit: "binary", maxLength: 6 }),
);
const lines = fc.oneof(
  fc
    .tuple(
      fc.constantFrom("a", "b", "c-d", "_e", "null", "true", "F", "__proto__", " g", "h "),
      fc.constantFrom(":", ": ", ":  ", ":\t"),
      scalars,
    )
    .map((parts) => parts.join("")),
  fc.tuple(fc.constantFrom("- ", "  - ", "-", " -  ", "    - "), scalars).map((parts) => parts.join("")),
  fc.constantFrom("", " ", "# x", "---"),
);

const plainLines = fc.oneof(
  {
    weight: 3,
    arbitrary: fc
      .tuple(fc.constantFrom("a", "b", "c-d", "_e", "F"), fc.constantFrom(":", ": ", ":  "), scalars)
      .map((parts) => parts.join("")),
  },
  { weight: 1, arbitrary: fc.tuple(fc.constantFrom("  - ", "- "), scalars).map((parts) => parts.join("")) },
  { weight: 1, arbitrary: lines },
);

test("the fast way reads what YAML reads", () => {
  let plain = 0;
  fc.assert(
    fc.property(fc.array(plainLines, { minLength: 1, maxLength: 4 }), (parts) => {
      const text = parts.join("\n").replace(/\r/g, "");
      const fast = readPlainFrontMatter(text);
      if (fast === undefined || Object.keys(fast).length === 0) return;
      plain += 1;
      expect({ data: fast, problems: [] }).toEqual(readYamlFrontMatter(text));
    }),
    { numRuns: rounds(2_000, 20_000) },
  );
  expect(plain).toBeGreaterThan(rounds(50, 500));
});

test("both readers read a list with a glob that is not YAML literally", () => {
  const items = fc.oneof(
    fc.constantFrom("*", "*.ts", "**/*.{ts,tsx}", "true", "null", '""', '"a{b"', "a]", "x y"),
    scalars,
  );
  let plain = 0;
  fc.assert(
    fc.property(fc.array(items, { minLength: 1, maxLength: 4 }), (list) => {
      const text = `a:\n${list.map((item) => `  - ${item}`).join("\n")}`.replace(/\r/g, "");
      const fast = readPlainFrontMatter(text);
      if (fast === undefined) return;
      plain += 1;
      expect({ data: fast, problems: [] }).toEqual(readYamlFrontMatter(text));
    }),
    { numRuns: rounds(500, 5_000) },
  );
  expect(plain).toBeGreaterThan(rounds(50, 500));
  expect(read("---\na:\n- *.ts\n- true\n---\n").data).toEqual({ a: ["*.ts", "true"] });
});

test("no text makes it throw, and the values are JSON", () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(lines, fc.string({ unit: "binary" })), { maxLength: 8 }), (parts) => {
      const text = parts.join("\n");
      JSON.stringify(readYamlFrontMatter(text));
      JSON.stringify(read(`---\n${text}\n---\nbody`));
    }),
    { numRuns: rounds(300, 3_000) },
  );
});
