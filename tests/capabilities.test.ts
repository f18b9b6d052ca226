import { existsSync } from "node:fs";
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

const linksIn = (cell: string): readonly string[] =>
  [...cell.matchAll(/\]\(([^)#]+)/g)].map(([, path = ""]) => path);

test.each(rows.map((cells) => [cells[0], cells]))(
  "%s has a status, and what it says is proven",
  (_, cells) => {
    const [, status = "", described = "", proof = ""] = cells;
    expect(cells).toHaveLength(4);
    expect(["Implemented", "Partial", "Planned"]).toContain(status);
    if (status === "Planned") return;
    expect(linksIn(described).length, "a link to its documentation").toBeGreaterThan(0);
    const tests = linksIn(proof);
    expect(tests.length, "a link to its test").toBeGreaterThan(0);
    for (const path of tests) {
      expect(path).toMatch(/\.test\.ts$/);
      expect(existsSync(resolve(dirname(page), path)), path).toBe(true);
    }
  },
);

const requirements = sharedFile("requirements");

test.skipIf(requirements === undefined)(
  "no capability of the requirements is left out, and none is twice",
  async () => {
    const folder = requirements ?? "";
    const texts = await Promise.all(
      (await readdir(folder)).map((name) => readFile(join(folder, name), "utf8")),
    );
    // "KitContext (alias of …)" is KitContext; "(graph backend)" belongs to its name.
    const nameOf = (name = ""): string => name.replace(/ \(alias .*/, "");
    const wanted = texts.flatMap(readRows).map(([name]) => nameOf(name));
    expect(wanted.length).toBeGreaterThan(60);
    expect(rows.map(([name]) => name)).toEqual(wanted);
  },
);
