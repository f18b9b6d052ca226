/** Takes one measurement in a separate process: `node measure.ts <name> <root>`; prints JSON. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { openProject } from "../../src/project/open-project.ts";
import type { Project } from "../../src/project/project.ts";
import { createRandomText } from "./random-text.ts";

const [name = "", root = "", round = "0"] = process.argv.slice(2);
const sources = readFileSync(join(root, ".kit-bench-sources"), "utf8").split("\n");

const timed = async (work: () => unknown): Promise<number> => {
  const start = performance.now();
  await work();
  return performance.now() - start;
};

/** The time of only reading the files and splitting them into lines. */
function readLines(): number {
  let lines = 0;
  for (const path of sources) lines += readFileSync(`${root}/${path}`, "utf8").split(/\r\n|\n|\r/).length;
  return lines;
}

function statAll(): void {
  for (const path of sources) statSync(`${root}/${path}`);
}

/** Opens the project over a new index, which is gone afterwards. */
async function coldOpen(): Promise<{ ms: number; project: Project }> {
  const start = performance.now();
  const project = await openProject({ root, indexFile: ":memory:" });
  return { ms: performance.now() - start, project };
}

const measurements: Record<string, () => Promise<unknown>> = {
  /** Floor and subject one after the other, in turns first, so that neither has the warmer start. */
  async cold() {
    const floorFirst = Number(round) % 2 === 0;
    const before = floorFirst ? await timed(readLines) : 0;
    const cpu = process.cpuUsage();
    const { ms, project } = await coldOpen();
    const { user, system } = process.cpuUsage(cpu);
    const floor = floorFirst ? before : await timed(readLines);
    await project.close();
    return { floor_ms: floor, subject_ms: ms, cpu_ms: (user + system) / 1000 };
  },
  /** A project that opens in the background: its first answer, what applies to a file, and how long others wait. */
  async first() {
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    const start = performance.now();
    const project = await openProject({ root, indexFile: ":memory:", background: true });
    project.specs.query({ limit: 20 });
    const answer = performance.now() - start;
    const folder = sources[Math.floor(sources.length / 2)]?.split("/").slice(0, 2).join("/");
    await project.ready(`${folder}/src/a.ts`);
    const file = performance.now() - start;
    await project.ready();
    delay.disable();
    await project.close();
    return {
      answer_ms: answer,
      file_ms: file,
      delay_max_ms: delay.max / 1e6,
      delay_p99_ms: delay.percentile(99) / 1e6,
    };
  },
  async warm() {
    const floors: number[] = [];
    const subjects: number[] = [];
    for (let index = 0; index < 9; index += 1) {
      floors.push(await timed(statAll));
      const start = performance.now();
      const project = await openProject({ root });
      subjects.push(performance.now() - start);
      await project.close();
    }
    return { floor_ms: median(floors), subject_ms: median(subjects), first_ms: subjects[0] };
  },
  async memory() {
    const { project } = await coldOpen();
    project.specs.query({ q: "system" });
    project.guidelines.list({ file: "src/a.ts" });
    await project.close();
    return { peak_mb: process.resourceUsage().maxRSS / 1024 };
  },
  /** The time from the call that saves a file to the first query that returns the new content. */
  async save() {
    const project = await openProject({ root });
    const watch = await project.watch();
    const times: number[] = [];
    const paths = sources.filter((path) => path.endsWith("requirements.md") || path.endsWith("CLAUDE.md"));
    for (let index = 0; index < 30; index += 1) {
      const path = paths[(index * 37) % paths.length] ?? "";
      const file = join(root, path);
      const text = readFileSync(file, "utf8");
      const word = `zzz${process.pid}x${index}`;
      // Changes a heading that is the title of a block.
      const changed = text.replace(
        /^(### Requirement \d+: |## (?!Introduction|Requirements))/m,
        `$1${word} `,
      );
      if (changed === text) continue;
      const start = performance.now();
      writeFileSync(file, changed);
      await until(() => project.specs.query({ q: word }).total_count > 0);
      times.push(performance.now() - start);
      writeFileSync(file, text);
      await until(() => project.specs.query({ q: word }).total_count === 0);
    }
    await watch.close();
    await project.close();
    return { p50_ms: median(times), max_ms: Math.max(...times) };
  },
  async impact() {
    const project = await openProject({ root });
    const random = createRandomText(11);
    const all = project.files();
    const times: number[] = [];
    for (let index = 0; index < 40; index += 1) {
      const files = Array.from({ length: 50 }, () => random.pick(all));
      times.push(await timed(() => JSON.stringify(project.specs.impact({ files }))));
    }
    await project.close();
    return { p50_ms: median(times), max_ms: Math.max(...times), first_ms: times[0] };
  },
};

/** Asks again at every turn of the event loop; fails when there is no answer within ten seconds. */
async function until(isSo: () => boolean): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!isSo()) {
    if (performance.now() > deadline) throw new Error("A saved file was not seen within ten seconds.");
    await new Promise(setImmediate);
  }
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

// The memory of an index that is thrown away must not be mixed up with that of another run.
process.env.TMPDIR = mkdtempSync(join(tmpdir(), "kit-bench-"));
try {
  console.log(JSON.stringify(await measurements[name]?.()));
} finally {
  rmSync(process.env.TMPDIR, { recursive: true, force: true });
}
