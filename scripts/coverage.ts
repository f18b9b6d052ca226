/**
 * `npm run test:coverage [-- PATH ...]` runs the unit tests below the paths (default: all of them) and prints a table of
 * the lines and branches of `src/` that they run, by room. It sets no threshold: it shows where tests are missing.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { repositoryRoot } from "./files.ts";

interface Counted {
  readonly total: number;
  readonly covered: number;
}

interface FileCoverage {
  readonly lines: Counted;
  readonly branches: Counted;
}

const folder = mkdtempSync(join(tmpdir(), "kit-coverage-"));
try {
  process.exitCode = runTests(process.argv.slice(2));
  printTable(readSummary());
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function runTests(paths: readonly string[]): number {
  const vitest = join(repositoryRoot, "node_modules/vitest/vitest.mjs");
  const coverage = [
    "--coverage.enabled",
    "--coverage.provider=v8",
    "--coverage.reporter=json-summary",
    "--coverage.reportOnFailure",
    `--coverage.reportsDirectory=${folder}`,
    ...(paths.length === 0 ? ["src"] : paths).map((path) => `--coverage.include=${path}/**/*.ts`),
    "--coverage.exclude=**/*.{test,suite}.ts",
    "--coverage.exclude=src/**/testing/**",
  ];
  const args = [vitest, "run", "--project", "unit", "--reporter=dot", ...coverage, ...paths];
  return spawnSync(process.execPath, args, { cwd: repositoryRoot, stdio: "inherit" }).status ?? 1;
}

function readSummary(): Readonly<Record<string, FileCoverage>> {
  const { total: _, ...files } = JSON.parse(readFileSync(join(folder, "coverage-summary.json"), "utf8"));
  return files;
}

function printTable(files: Readonly<Record<string, FileCoverage>>): void {
  const rooms = Map.groupBy(Object.entries(files), ([file]) =>
    relative(repositoryRoot, file).split("/").slice(0, 2).join("/"),
  );
  console.log(`${"room".padEnd(24)} files   lines  branches`);
  for (const [room, entries] of [...rooms].sort(([a], [b]) => a.localeCompare(b))) {
    const share = (of: keyof FileCoverage): string => percent(entries.map(([, file]) => file[of]));
    console.log(
      `${room.padEnd(24)} ${String(entries.length).padStart(5)} ${share("lines")}  ${share("branches")}`,
    );
  }
}

function percent(counts: readonly Counted[]): string {
  const total = counts.reduce((sum, count) => sum + count.total, 0);
  const covered = counts.reduce((sum, count) => sum + count.covered, 0);
  return (total === 0 ? "–" : `${((100 * covered) / total).toFixed(1)} %`).padStart(7);
}
