/**
 * Measures how long command lines take from start to end, compared with an empty script: whole processes, one of each in
 * turn, medians. Prints a table and fails when a target is missed.
 *
 * `--rounds 30` measures more of them.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { build } from "../../scripts/build.ts";
import { repositoryRoot } from "../../scripts/files.ts";

interface Line {
  readonly name: string;
  readonly args: readonly string[];
  /** The limit, as a multiple of the empty script. */
  readonly target?: number;
}

const { values } = parseArgs({ options: { rounds: { type: "string", default: "15" } } });
const rounds = Number(values.rounds);
const folder = mkdtempSync(join(tmpdir(), "kit-bench-cli-"));
const empty = join(folder, "empty.mjs");
writeFileSync(empty, "");
const kit = join(repositoryRoot, "bin/kit.mjs");
const lines: readonly Line[] = [
  { name: "an empty script", args: [empty] },
  { name: "kit --help", args: [kit, "--help"], target: 2.5 },
  { name: "kit run --help", args: [kit, "run", "--help"], target: 2.5 },
  { name: "kit specs list", args: [kit, "specs", "list"] },
  {
    name: "kit run --prompt",
    args: [kit, "run", "--prompt", "Which rules apply to src/checkout/checkout.ts?"],
  },
];

try {
  await build();
  const times = lines.map((): number[] => []);
  // The first round fills caches, as for a user's second command.
  for (let round = -1; round < rounds; round += 1) {
    lines.forEach(({ args, name }, index) => {
      const started = performance.now();
      const { status, stderr } = spawnSync(process.execPath, args, {
        cwd: join(repositoryRoot, "examples/shop"),
      });
      if (status !== 0) throw new Error(`${name} failed: ${String(stderr)}`);
      if (round >= 0) times[index]?.push(performance.now() - started);
    });
  }
  const medians = times.map((each) => each.sort((a, b) => a - b)[Math.floor(each.length / 2)] ?? Number.NaN);
  const floor = medians[0] ?? Number.NaN;
  console.log(`${rounds} rounds, Node ${process.versions.node}\n`);
  lines.forEach(({ name, target }, index) => {
    const ms = medians[index] ?? Number.NaN;
    const ratio = ms / floor;
    const verdict = target === undefined ? "" : ratio <= target ? `met (${target}×)` : `MISSED (${target}×)`;
    if (verdict.startsWith("MISSED")) process.exitCode = 1;
    console.log(
      `${name.padEnd(18)} ${ms.toFixed(0).padStart(5)} ms  ${ratio.toFixed(2).padStart(5)}×  ${verdict}`,
    );
  });
} finally {
  rmSync(folder, { recursive: true, force: true });
}
