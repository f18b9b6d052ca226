import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { createTemporaryRepository } from "../src/testing/temporary-repository.ts";
import { changedPaths, importDistances, nearestTests, readImports } from "./nearest-tests.ts";

const imports = new Map([
  ["src/a/leaf.ts", []],
  ["src/a/user.ts", ["src/a/leaf.ts"]],
  ["src/b/service.ts", ["src/a/user.ts", "src/b/other.ts"]],
  ["src/a/leaf.test.ts", ["src/a/leaf.ts"]],
  ["src/b/near.test.ts", ["src/a/leaf.ts"]],
  ["src/a/user.test.ts", ["src/a/user.ts"]],
  ["src/b/service.test.ts", ["src/b/service.ts"]],
  ["src/b/other.test.ts", ["src/b/other.ts"]],
]);
const tests = [...imports.keys()].filter((path) => path.endsWith(".test.ts"));

test("the distance of a module from a change is its shortest import path", () => {
  const distances = importDistances(["src/a/leaf.ts"], imports);
  expect(distances.get("src/a/leaf.test.ts")).toBe(1);
  expect(distances.get("src/b/service.test.ts")).toBe(3);
  expect(distances.has("src/b/other.test.ts")).toBe(false);
});

test("tests in the folder of the change come first, then the nearest others, up to the limit", () => {
  const nearest = nearestTests(tests.toReversed(), { changed: ["src/a/leaf.ts"], imports, most: 3 });
  expect(nearest).toEqual(["src/a/leaf.test.ts", "src/a/user.test.ts", "src/b/near.test.ts"]);
});

test("tests in the room of the change come before equally near others", () => {
  const wide = new Map([
    ["src/b/x.test.ts", ["src/a/in/leaf.ts"]],
    ["src/a/x.test.ts", ["src/a/in/leaf.ts"]],
  ]);
  const nearest = nearestTests([...wide.keys()], { changed: ["src/a/in/leaf.ts"], imports: wide, most: 2 });
  expect(nearest).toEqual(["src/a/x.test.ts", "src/b/x.test.ts"]);
});

test("a changed test is itself the nearest", () => {
  const changed = ["src/a/leaf.ts", "src/b/other.test.ts"];
  expect(nearestTests(tests, { changed, imports, most: 1 })).toEqual(["src/b/other.test.ts"]);
});

test("modules that import each other in a circle are visited once", () => {
  const circle = new Map([
    ["a.ts", ["b.ts"]],
    ["b.ts", ["a.ts"]],
  ]);
  expect(importDistances(["a.ts"], circle)).toEqual(
    new Map([
      ["a.ts", 0],
      ["b.ts", 1],
    ]),
  );
});

test("imports and changes are read from the work tree, including new files, without imports of types", async () => {
  await using folder = await createTemporaryRepository({
    "src/a.ts":
      'import type { T } from "./types.ts";\nimport {\n  one,\n} from "./lib/one.ts";\nexport * from "./two.ts";\n',
    "src/lib/one.ts": 'const lazy = () => import("../two.ts");\nimport "./effect.ts";\n',
  });
  const git = (...args: readonly string[]): string =>
    execFileSync("git", args, { cwd: folder.root, encoding: "utf8" });
  git("init", "-q");
  git("add", "-A");
  git("-c", "user.name=Ann", "-c", "user.email=a@b.c", "commit", "-qm", "One");
  await folder.write("src/new.ts", "");
  await folder.write("src/lib/one.ts", 'const lazy = () => import("../two.ts");\nimport "./effect.ts";\n\n');
  expect(changedPaths(folder.root)).toEqual(["src/lib/one.ts", "src/new.ts"]);
  expect(readImports(folder.root)).toEqual(
    new Map([
      ["src/a.ts", ["src/lib/one.ts", "src/two.ts"]],
      ["src/lib/one.ts", ["src/two.ts", "src/lib/effect.ts"]],
      ["src/new.ts", []],
    ]),
  );
});
