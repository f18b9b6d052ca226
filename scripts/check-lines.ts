/**
 * `npm run lines` counts the lines of each room of `src/`, and of all tests, and fails where a count is above its budget in
 * `scripts/line-budgets.json`. A commit that raises a budget says why. `--write` replaces the budgets with the present counts.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { parseArgs } from "node:util";
import { listFiles, repositoryRoot } from "./files.ts";

const budgetsFile = join(import.meta.dirname, "line-budgets.json");
const folders = ["src", "tests", "scripts", "bench", "console/src"];

/** Lines by room: a folder of `src/`, or `tests` for the test files of all folders. */
async function countLines(): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  const files = (await Promise.all(folders.map((folder) => listFiles(join(repositoryRoot, folder))))).flat();
  // `npm run bench:peers` installs packages below `bench/`.
  for (const file of files.filter((path) => /\.tsx?$/.test(path) && !path.includes("node_modules"))) {
    const [top, room = ""] = relative(repositoryRoot, file).split(sep);
    const isTest = /\.(test|suite)\.tsx?$/.test(file) || top === "tests";
    if (!isTest && top !== "src") continue;
    const name = isTest ? "tests" : room.replace(/\.ts$/, "");
    const text = await readFile(file, "utf8");
    counts.set(name, (counts.get(name) ?? 0) + text.split("\n").length - 1);
  }
  return new Map([...counts].sort());
}

const { values } = parseArgs({ options: { write: { type: "boolean", default: false } } });
const counts = await countLines();
const ofSource = [...counts].reduce((sum, [room, lines]) => (room === "tests" ? sum : sum + lines), 0);
console.log(`src has ${ofSource} lines without tests, the tests have ${counts.get("tests") ?? 0}.`);
if (values.write) {
  writeFileSync(budgetsFile, `${JSON.stringify(Object.fromEntries(counts), null, 2)}\n`);
} else {
  const budgets: Readonly<Record<string, number>> = JSON.parse(readFileSync(budgetsFile, "utf8"));
  for (const [room, lines] of counts) {
    const budget = budgets[room] ?? 0;
    if (lines <= budget) continue;
    console.error(
      `${room} has ${lines} lines, its budget is ${budget}. Delete some, or raise the budget with npm run lines -- --write and say why in the commit.`,
    );
    process.exitCode = 1;
  }
}
