/**
 * Judges commits of this repository's own history as `kit specs verify` would, to count false refusals: each commit is honest work that
 * people have accepted. `node scripts/verify-history.ts [--commits 20] [--until <revision>] [folder …]` takes the newest commits that
 * change code and tests of the folders, and runs the tests of these folders only. Prints a line per commit.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { verifySpecs } from "../src/app/verify/verify-specs.ts";
import { openProject } from "../src/project/open-project.ts";

const { values, positionals } = parseArgs({
  options: { commits: { type: "string", default: "20" }, until: { type: "string", default: "HEAD" } },
  allowPositionals: true,
});
const folders = positionals.length > 0 ? positionals : ["src/specs", "src/guidelines"];
const root = join(import.meta.dirname, "..");
const git = (...args: readonly string[]): string =>
  execFileSync("git", args, { cwd: root, encoding: "utf8", maxBuffer: 64 * 1024 * 1024 });

const candidates = git("log", "--no-merges", "--format=%H", values.until, "--", ...folders)
  .trim()
  .split("\n");
const chosen = candidates
  .filter((commit) => {
    const files = git("show", "--name-only", "--format=", commit).trim().split("\n");
    return (
      files.some((file) => file.endsWith(".test.ts")) && files.some((file) => /(?<!\.test)\.ts$/.test(file))
    );
  })
  .slice(0, Number(values.commits));

const ends = new Map<string, number>();
for (const commit of chosen) {
  const parent = mkdtempSync(join(tmpdir(), "kit-history-"));
  const folder = join(parent, "tree");
  git("worktree", "add", "--quiet", "--detach", folder, commit);
  try {
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
    const project = await openProject({ root: folder, indexFile: ":memory:", readOnly: true });
    const settings = {
      test: `vitest run --project unit --reporter=junit --outputFile={report} ${folders.join(" ")} {files}`,
    };
    const { end, reasons, criteria, duration_ms, runs } = await verifySpecs(project, {
      since: `${commit}~1`,
      settings,
    });
    await project.close();
    ends.set(end, (ends.get(end) ?? 0) + 1);
    const [base] = runs;
    const why = reasons.map(({ check, message }) => `${check}: ${message.slice(0, 160)}`).join("\n    ");
    process.stdout.write(
      `${commit.slice(0, 8)} ${end} ${criteria.length} criteria, ${base?.tests ?? 0} tests, ${(duration_ms / 1_000).toFixed(0)} s (base ${((base?.duration_ms ?? 0) / 1_000).toFixed(0)} s)\n    ${why}\n`,
    );
  } finally {
    git("worktree", "remove", "--force", folder);
    rmSync(parent, { recursive: true, force: true });
  }
}
process.stdout.write(
  `${[...ends].map(([end, count]) => `${count} ${end}`).join(", ")} of ${chosen.length} commits\n`,
);
