import fc from "fast-check";
import { expect, test } from "vitest";
import { canonical } from "../../base/json-text.ts";
import { isRecord } from "../../base/record.ts";
import { parseJson, setJson } from "./edit-json.ts";

const text = `// ours
{
  "inputs": [], // none
  "servers": {
    /* mine */ "a": { "command": "x" }, // keep
    "b": {"command": "y"}
  },
}
`;

test("a value is added, replaced and removed, and comments, order and other bytes stay", () => {
  const added = setJson(text, ["servers", "c"], { url: "u" });
  expect(added).toBe(text.replace('"y"}\n', '"y"},\n    "c": {\n      "url": "u"\n    }\n'));
  expect(setJson(added, ["servers", "c"], undefined)).toBe(text);
  expect(setJson(text, ["servers", "a", "command"], "z")).toBe(text.replace('"x"', '"z"'));
  expect(setJson(text, ["servers", "b"], undefined)).toBe(
    text.replace('{ "command": "x" },', '{ "command": "x" }').replace('    "b": {"command": "y"}\n', ""),
  );
  expect(setJson(text, ["servers", "a", "command"], "x")).toBe(text);
  expect(setJson('{"a":{"b":1}}', ["a", "c"], 2)).toBe('{"a":{"b":1, "c": 2}}');
  expect(setJson("{\r\n\t// none\r\n}", ["a"], [1])).toBe('{\r\n\t// none\r\n\t"a": [\r\n\t\t1\r\n\t]\r\n}');
});

test.each([
  ["{", "Line 1 is not JSON: a key in double quotes is missing."],
  ['{\n"a": 1\n"b": 2}', "Line 3 is not JSON: a comma or } is missing."],
  ['{"a": 1, "a": 2}', 'the key "a" is there twice'],
  ["[1 2]", "a comma or ] is missing"],
  ["{} x", "text follows the end"],
  ["/* {}", "a value is missing"],
  ["[".repeat(200), "nested deeper than 100"],
  ['{"a": tru}', "a value is missing"],
])("%j is refused: %s", (broken, message) => {
  expect(() => setJson(broken, ["x"], 1)).toThrow(message);
});

test("where something else is in the way, nothing is written", () => {
  expect(() => setJson("[]", ["x"], 1)).toThrow("It is not an object.");
  expect(() => setJson('{"servers": 1}', ["servers", "x"], 1)).toThrow('"servers" is not an object.');
});

const gap = fc.constantFrom("", " ", "\n  ", "\r\n\t", " /* c */ ", " // c\n    ", "\n\n");
const key = fc.constantFrom("a", "b", "servers", "__proto__", 'q"\\', "é");
/** Texts of JSON with comments and trailing commas. */
const { node } = fc.letrec<{ node: string; object: string }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom('"x // no"', "1", "-2.5e3", "true", "null", "[1, /* [ */ 2,]", "[]"),
    tie("object"),
  ),
  object: fc
    .tuple(
      fc.uniqueArray(fc.tuple(key, tie("node"), gap, gap), { selector: ([name]) => name, maxLength: 4 }),
      fc.boolean(),
      gap,
    )
    .map(([members, trailing, end]) => {
      const written = members.map(
        ([name, value, before, after]) => `${before}${JSON.stringify(name)}:${after}${value}${after}`,
      );
      return `{${written.join(",")}${trailing && written.length > 0 ? "," : ""}${end}}`;
    }),
}));
const comments = (written: string): readonly string[] => written.match(/\/\* c \*\/|\/\/ c/g) ?? [];

test("any edit of any text changes the one value and keeps each comment around it", () => {
  fc.assert(
    fc.property(
      node,
      fc.array(key, { minLength: 1, maxLength: 2 }),
      fc.jsonValue(),
      (before, path, value) => {
        const root = parseJson(before).value;
        if (!isRecord(root) || canonical(value) === "null") return;
        const inner = path.length === 1 ? root : root[path[0] ?? ""];
        if (inner !== undefined && !isRecord(inner)) return;
        const model: Record<string, unknown> = Object.assign(
          Object.create(null),
          JSON.parse(JSON.stringify(root)),
        );
        const set = (target: Record<string, unknown>, name: string, item: unknown): void =>
          void Object.defineProperty(target, name, {
            value: item,
            enumerable: true,
            configurable: true,
            writable: true,
          });
        const last = path.at(-1) ?? "";
        const above = Object.assign(Object.create(null), path.length === 1 ? root : inner);
        set(above, last, JSON.parse(JSON.stringify(value)));
        const expected = path.length === 1 ? above : model;
        if (path.length === 2) set(model, path[0] ?? "", above);
        const after = setJson(before, path, value);
        expect(canonical(parseJson(after).value)).toBe(canonical(expected));
        const isNew = inner === undefined || !Object.hasOwn(inner, last);
        if (isNew) expect(comments(after)).toEqual(comments(before));
        const removed = setJson(after, path, undefined);
        delete above[last];
        expect(canonical(parseJson(removed).value)).toBe(canonical(expected));
        if (isNew) expect(comments(removed)).toEqual(comments(before));
      },
    ),
    { numRuns: 2_000 },
  );
});
