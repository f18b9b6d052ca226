const codeExtensions = new Set(
  (
    "ts tsx mts cts js jsx mjs cjs vue svelte py pyi rb go rs java kt kts scala groovy cs fs vb c h cc cpp cxx hpp " +
    "m mm swift php ex exs erl hs ml clj cljs cljc dart lua r jl pl t sh bash bats ps1 sql zig nim cr sol elm feature robot"
  ).split(" "),
);
const testOnlyExtensions = new Set(["bats", "feature", "robot", "t"]);

const testFolders = new Set(
  "test tests __tests__ testing spec specs __specs__ e2e cypress integration-tests integration_tests unit-tests unit_tests".split(
    " ",
  ),
);

/** `a.test.ts`, `a_spec.rb`, `a-test.js`, `test_a.py`, `tests.rs`, `a.e2e.ts`, `a.cy.ts`. */
const testName = /(?:^|[._-])(?:tests?|specs?|e2e|cy|it)(?:[._-]|$)/;
/** `LoginTest.java`, `LoginTests.cs`, `LoginSpec.scala`, `LoginIT.java`. */
const capitalName = /[a-z0-9](?:Tests?|TestCase|Specs?|IT)$/;

/**
 * Whether a path is that of a test, by the conventions of its language: a source file (by its
 * extension) in a folder of tests, or with the name of one. Decides by the path alone.
 */
export function isTestPath(path: string): boolean {
  const segments = path.split("/");
  const file = segments.pop() ?? "";
  const dot = file.lastIndexOf(".");
  const extension = file.slice(dot + 1).toLowerCase();
  if (dot <= 0 || !codeExtensions.has(extension)) return false;
  if (testOnlyExtensions.has(extension)) return true;
  const name = file.slice(0, dot);
  if (testName.test(name.toLowerCase()) || capitalName.test(name)) return true;
  return segments.some((segment) => testFolders.has(segment.toLowerCase()));
}

const fixtureFolders = new Set(
  "fixture fixtures __fixtures__ test-fixtures test_fixtures testdata test-data test_data __mocks__ __snapshots__".split(
    " ",
  ),
);
const testFoldersAbove = new Set("test tests __tests__ e2e".split(" "));
/** Tools whose specs lie in a folder of their own; instruction files may well be about a folder of tests. */
const toolsWithFolders = new Set(["kiro", "speckit", "openspec"]);

/**
 * Whether a file lies where tests keep their data, and so is no spec of the project: below a folder of
 * fixtures, or, for the tools that have folders of their own, below a folder of tests.
 */
export function isFixturePath(path: string, adapter: string): boolean {
  const folders = path.split("/").slice(0, -1);
  const ofTests = toolsWithFolders.has(adapter);
  return folders.some((folder) => fixtureFolders.has(folder) || (ofTests && testFoldersAbove.has(folder)));
}
