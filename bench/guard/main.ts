/**
 * `npm run bench:guard` counts what a prompt of kit costs (bytes, promises, timers, statements), and checks the counts against those of
 * `bench/counts.json`. Then it makes a few measurements of kit, each as a multiple of its floor in the same run, and checks them against the limits of
 * `bench/ratios.json`. It compares processor time, which other work on the machine changes little, and repeats measurements
 * above their limit: noise makes a figure larger, never smaller. Prints the figures; exits with 1 and a sentence for each fault.
 *
 * `--write` replaces the counts with this run's, and the limits with its figures plus headroom. `--counts` only counts.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { build } from "../../scripts/build.ts";
import { repositoryRoot } from "../../scripts/files.ts";
import type { MeasurementName as LoopName } from "../runtime/measurements.ts";
import { runChild } from "../runtime/run-child.ts";
import { type CountsByName, judgeCounts, type PromptCounts } from "./judge-counts.ts";
import { judgeRatios, type MeasuredRatio, type RatioLimits, toLimits } from "./judge-ratios.ts";

/** How often a figure above its limit is measured in all. */
const attempts = 3;
const limitsFile = join(import.meta.dirname, "../ratios.json");
const countsFile = join(import.meta.dirname, "../counts.json");

/** The processor time of kit and of its floor, in the same unit. */
interface Cost {
  readonly kit: number;
  readonly floor: number;
}

const measurements: Readonly<Record<string, () => Promise<Cost>>> = {
  "five-turn tool loop, in memory": () => loop("loop_memory"),
  "five-turn tool loop, stored": () => loop("loop_stored"),
  "a prompt over HTTP, stored": prompt,
  "start of the command line": () => start(["--help"]),
  "list of one spec by the command line": () => start(["specs", "list"]),
  "index of 300 files": () => runChild<Cost>({ file: join(import.meta.dirname, "index-child.ts") }, []),
};

const { values } = parseArgs({
  options: { write: { type: "boolean", default: false }, counts: { type: "boolean", default: false } },
});
const limits: RatioLimits = JSON.parse(readFileSync(limitsFile, "utf8"));
await build({ declarations: !values.counts });
const faults = [...(await checkCounts())];
if (!values.counts) faults.push(...(await checkRatios()));
for (const fault of faults) console.error(fault);
if (faults.length > 0) process.exitCode = 1;

async function checkCounts(): Promise<readonly string[]> {
  const counts: CountsByName = {
    "one turn, in memory": await count("answer", "memory"),
    "five-turn tool loop, in memory": await count("tools", "memory"),
    "five-turn tool loop, stored": await count("tools", "file"),
  };
  for (const [name, { bytes, kept, waiting, promises, timers, statements }] of Object.entries(counts))
    console.log(
      `${name.padEnd(32)} ${bytes} bytes, ${kept} kept, ${waiting} waiting, ${promises} promises, ${timers} timers, ${statements} statements`,
    );
  if (!values.write) return judgeCounts(counts, JSON.parse(readFileSync(countsFile, "utf8")));
  writeFileSync(countsFile, `${JSON.stringify(counts, null, 2)}\n`);
  return [];
}

function count(
  ...args: readonly [script: "answer" | "tools", place: "memory" | "file"]
): Promise<PromptCounts> {
  const flags = ["--expose-gc", "--min-semi-space-size=256", "--max-semi-space-size=256"];
  return runChild<PromptCounts>({ file: join(import.meta.dirname, "counts-child.ts"), flags }, args);
}

async function checkRatios(): Promise<readonly string[]> {
  const ratios: MeasuredRatio[] = [];
  for (const [name, measure] of Object.entries(measurements)) {
    const since = performance.now();
    let ratio = Number.POSITIVE_INFINITY;
    for (let attempt = 1; attempt <= attempts; attempt += 1) {
      const { kit, floor } = await measure();
      ratio = Math.min(ratio, kit / floor);
      if (values.write ? attempt === attempts : ratio <= (limits[name]?.limit ?? 0)) break;
    }
    ratios.push({ name, ratio });
    const known = limits[name];
    const limitText = known === undefined ? "" : `  limit ${known.limit}×, was ${known.measured}×`;
    const seconds = ((performance.now() - since) / 1_000).toFixed(0);
    console.log(`${name.padEnd(32)} ${ratio.toFixed(2).padStart(7)}×${limitText}  (${seconds} s)`);
  }
  if (!values.write) return judgeRatios(ratios, limits);
  writeFileSync(limitsFile, `${JSON.stringify(toLimits(ratios), null, 2)}\n`);
  console.log("bench/ratios.json and bench/counts.json are written: commit them, and say why.");
  return [];
}

async function loop(name: LoopName): Promise<Cost> {
  const file = join(import.meta.dirname, "../runtime/child.ts");
  const micros = async (subject: string): Promise<number> =>
    (await runChild<{ readonly micros: number }>({ file }, [name, subject])).micros;
  return { floor: await micros("floor"), kit: await micros("kit") };
}

async function prompt(): Promise<Cost> {
  const file = join(import.meta.dirname, "prompt-child.ts");
  const micros = async (subject: string): Promise<number> =>
    (await runChild<{ readonly cpu_micros: number }>({ file }, [subject])).cpu_micros;
  return { floor: await micros("floor"), kit: await micros("kit") };
}

/** Measures whole processes in turns, after one that fills caches; returns the least of each, because noise only adds. */
async function start(command: readonly string[]): Promise<Cost> {
  const folder = mkdtempSync(join(tmpdir(), "kit-bench-guard-"));
  try {
    const spec = join(folder, ".kiro/specs/cart/requirements.md");
    mkdirSync(dirname(spec), { recursive: true });
    writeFileSync(spec, "# Requirements\n\n### Requirement 1\n");
    const empty = join(folder, "empty.mjs");
    writeFileSync(empty, "");
    const times: Cost[] = Array.from({ length: 12 }, () => ({
      floor: processorMs([empty], folder),
      kit: processorMs([join(repositoryRoot, "bin/kit.mjs"), ...command], folder),
    }));
    const measured = times.slice(2);
    return {
      floor: Math.min(...measured.map(({ floor }) => floor)),
      kit: Math.min(...measured.map(({ kit }) => kit)),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns the processor time of a Node process from its start to its end, in ms. */
function processorMs(args: readonly string[], folder: string): number {
  const note = join(folder, "note");
  const report = join(folder, "report.mjs");
  writeFileSync(
    report,
    `import { writeFileSync } from "node:fs";
process.on("exit", () => {
  const { user, system } = process.cpuUsage();
  writeFileSync(${JSON.stringify(note)}, String((user + system) / 1000));
});`,
  );
  const line = ["--import", pathToFileURL(report).href, ...args];
  const { status, stderr } = spawnSync(process.execPath, line, { cwd: folder });
  if (status !== 0) throw new Error(`${args.join(" ")} failed: ${String(stderr)}`);
  return Number(readFileSync(note, "utf8"));
}
