import { expect, test } from "vitest";
import { createPathRouter } from "./answer-request.ts";

const paths = [
  "/",
  "/api/specs/:id",
  "/api/specs/graph",
  "/agents/:name/:id",
  "/agents/:name/:id/events",
  "/*",
];
const router = createPathRouter<string>();
for (const path of paths) router.add("ALL", path, path);

const match = (path: string): string | undefined => router.match("GET", path)[0][0]?.[0];

test.each([
  ["/", "/"],
  ["/api/specs/graph", "/api/specs/graph"],
  ["/api/specs/graph%20", "/api/specs/:id"],
  ["/agents/reviewer/pr-7", "/agents/:name/:id"],
  ["/agents/reviewer/events", "/agents/:name/:id"],
  ["/agents/reviewer/pr-7/events", "/agents/:name/:id/events"],
  ["/agents/:name/:id", "/agents/:name/:id"],
])("%s is a path of %s", (path, rule) => {
  expect(match(path)).toBe(rule);
});

test.each([
  "",
  "/agents",
  "/agents//pr-7",
  "/agents/reviewer/",
  "/agents/reviewer/pr-7/",
  "/AGENTS/a/b",
  "//",
  "/__proto__",
])("%s is not a path of any rule", (path) => {
  expect(match(path)).toBe("/*");
});

test("a path without a rule has no handler if there is no fallback", () => {
  expect(createPathRouter<string>().match("GET", "/")).toEqual([[]]);
});
