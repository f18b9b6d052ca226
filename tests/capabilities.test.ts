import { readdir, readFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { expect, test } from "vitest";
import { repositoryRoot } from "../scripts/files.ts";
import { sharedFile } from "./shared-folder.ts";

const page = join(repositoryRoot, "docs/capabilities.md");
const rows = readRows(await readFile(page, "utf8"));

/** The cells of every row below the header of a table whose second column is the status. */
function readRows(text: string): readonly (readonly string[])[] {
  const found: string[][] = [];
  let inTable = false;
  for (const line of text.split("\n")) {
    const cells = line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim());
    if (cells.length < 3) inTable = false;
    else if (cells[1] === "Status") inTable = true;
    else if (inTable && !/^-+$/.test(cells[0] ?? "")) found.push(cells);
  }
  return found;
}

interface Link {
  readonly path: string;
  /** The text in quotes after the path: in a proof, the title of a test. */
  readonly title: string;
}

const linksIn = (cell: string): readonly Link[] =>
  [...cell.matchAll(/\]\(([^)#\s]+)[^\s)]*(?: "([^"]*)")?\)/g)].map(([, path = "", title = ""]) => ({
    path,
    title,
  }));

/**
 * Returns the titles of a file's tests and of the shared cases that it imports, without comments, groups and tests that are always skipped.
 */
async function testTitles(file: string): Promise<readonly string[]> {
  const source = await readFile(file, "utf8");
  const code = source.replace(/\/\*\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
  const titles: string[] = [];
  for (const call of code.matchAll(/(?:([\w.]+)|\))\(\s*(["'`])((?:(?!\2)[^\\]|\\.)*)\2,/g)) {
    // A title after `test.each([…])` belongs to the call before it.
    const before = code.slice(0, call.index).match(/\b(?:test|describe)\b[\w.]*(?=\()/g);
    const name = call[1] ?? before?.at(-1) ?? "";
    const isTest = /^(?:test|it)\b|Test$|^on[A-Z]\w*$/.test(name);
    if (!isTest || /\.(?:skip|todo)\b/.test(name)) continue;
    titles.push(call[3] ?? "");
  }
  // The cases of a contract, each a function under its title.
  for (const [, title = ""] of code.matchAll(/^\s*"([^"]+)": async \(/gm)) titles.push(title);
  const cases = [...code.matchAll(/ from "(\.[^"]*(?:\.suite|-cases)\.ts)"/g)];
  const shared = await Promise.all(cases.map(([, path = ""]) => testTitles(resolve(dirname(file), path))));
  return [...titles, ...shared.flat()];
}

test.each(rows.map((cells) => [cells[0], cells]))(
  "%s has a status, and its claims are proven",
  async (_, cells) => {
    const [, status = "", described = "", proof = ""] = cells;
    expect(cells).toHaveLength(4);
    expect(["Implemented", "Partial", "Planned"]).toContain(status);
    if (status === "Planned") return;
    expect(linksIn(described).length, "a link to its documentation").toBeGreaterThan(0);
    const tests = linksIn(proof);
    expect(tests.length, "a link to its test").toBeGreaterThan(0);
    for (const { path, title } of tests) {
      expect(path).toMatch(/\.(test|suite)\.ts$/);
      expect(title, `the title of a test, in quotes after ${path}`).not.toBe("");
      const titles = await testTitles(resolve(dirname(page), path));
      // The beginning is enough, because titles can end with parameters of the run.
      expect(
        titles.filter((each) => each.startsWith(title)),
        `a test of ${path} that is called "${title}" and is not skipped`,
      ).not.toEqual([]);
    }
  },
);

const requirements = sharedFile("requirements");

test.skipIf(requirements === undefined)("every capability of the requirements is listed once", async () => {
  const folder = requirements ?? "";
  const texts = await Promise.all(
    (await readdir(folder)).map((name) => readFile(join(folder, name), "utf8")),
  );
  // "KitContext (alias of …)" is KitContext; "(graph backend)" belongs to its name.
  const nameOf = (name = ""): string => name.replace(/ \(alias .*/, "");
  const expected = texts.flatMap(readRows).map(([name]) => nameOf(name));
  expect(expected.length).toBeGreaterThan(60);
  expect(rows.map(([name]) => name)).toEqual(expected);
});
