const fixtureFolders = new Set(
  "fixture fixtures __fixtures__ test-fixtures test_fixtures testdata test-data test_data __mocks__ __snapshots__".split(
    " ",
  ),
);
const testFolders = new Set("test tests __tests__ e2e".split(" "));
/** Tools whose specs lie in a folder of their own; instruction files may well be about a folder of tests. */
const toolsWithFolders = new Set(["kiro", "speckit", "openspec"]);

/**
 * Whether a file lies where tests keep their data, and so is no spec of the project: below a folder of
 * fixtures, or, for the tools that have folders of their own, below a folder of tests.
 */
export function isFixturePath(path: string, adapter: string): boolean {
  const folders = path.split("/").slice(0, -1);
  const ofTests = toolsWithFolders.has(adapter);
  return folders.some((folder) => fixtureFolders.has(folder) || (ofTests && testFolders.has(folder)));
}
