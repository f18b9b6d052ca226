import { expect, test } from "vitest";
import { readQuery } from "./read-request.ts";

test("decodes names and values once, plus signs as spaces", () => {
  expect({ ...readQuery("/x?q=a+b%20c&file=src%2Fa.ts&path=100%2525") }).toEqual({
    q: "a b c",
    file: "src/a.ts",
    path: "100%25",
  });
});

test("no query, empty pairs and empty values are absent", () => {
  for (const url of ["/x", "/x?", "/x?&&", "/x?q=", "/x?q", "/x?q=&q="]) {
    expect({ ...readQuery(url) }).toEqual({});
  }
});

test("a repeated parameter is refused, not joined", () => {
  expect(() => readQuery("/x?q=a&q=b")).toThrow("not valid");
});

test("text that is not UTF-8 is refused, not replaced", () => {
  for (const url of ["/x?q=%ff%fe", "/x?q=%", "/x?%zz=1"]) expect(() => readQuery(url)).toThrow("not valid");
});

test("prototype names are ordinary names", () => {
  const query = readQuery("/x?__proto__=1&constructor=2&__proto__[x]=3");
  expect(Object.keys(query)).toEqual(["__proto__", "constructor", "__proto__[x]"]);
  expect(({} as { x?: unknown }).x).toBeUndefined();
});
