import { expect, test } from "vitest";
import { unclearNames } from "./declared-names.ts";

test.each([
  ["const told = 1;", ["told"]],
  ["let { wanted, a: heard, keyed: b } = x;", ["wanted", "heard"]],
  ["const [places = []] = x;", ["places"]],
  ["function sayHello(full: string, ...named: string[]) {}", ["sayHello", "full", "named"]],
  ["const f = ({ who }: X) => who;", ["who"]],
  ["class A { #looks = 1; hear(keep: number) {} #asks() {} }", ["looks", "hear", "keep", "asks"]],
  ["interface WorkDesk { readonly suspect: string; bring(): void }", ["WorkDesk", "suspect", "bring"]],
  ["type Tell = { seal: 1 };", ["seal"]],
  ["const o = { giveBack() {}, shown: 1 };", ["giveBack"]],
  ["class A { keep() {} }", ["keep"]],
])("a declaration with an unclear name is found: %s", (text, names) => {
  expect(unclearNames("src/a.ts", text)).toEqual(names);
});

test.each([
  "send({ told: 1 }); x.wanted.heard();",
  "const lookup = 1, fullName = 2, keepAlive = 3, sayings = 4, wantedness = 5;",
  "// told, wanted\nconst text = `const told = 1`;",
])("a use, a longer word, a comment and a text are not declarations: %s", (text) => {
  expect(unclearNames("src/a.ts", text)).toEqual([]);
});

test("a stored record keeps its unclear names, and the same names elsewhere are reported", () => {
  const text = "interface Note { readonly heard: string; readonly told: string }";
  expect(unclearNames("src/backends/graph/log-saver.ts", text)).toEqual(["told"]);
  expect(unclearNames("src/agents/log/note.ts", text)).toEqual(["heard", "told"]);
});
