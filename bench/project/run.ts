import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { generateRepository } from "./generate-repository.ts";
import { createRandomText } from "./random-text.ts";

/** One line of the result. `ratio`s compare with a floor that was measured in the same process. */
interface Result {
  readonly name: string;
  readonly value: number;
  readonly unit: "ms" | "×" | "MB";
  readonly target: number;
  readonly detail: string;
}

const { values } = parseArgs({
  options: {
    files: { type: "string", default: "10000" },
    rounds: { type: "string", default: "5" },
    only: { type: "string" },
    help: { type: "boolean", short: "h" },
  },
});
if (values.help === true) {
  console.log(
    "npm run bench:project -- [--files 10000] [--rounds 5] [--only cold,first,warm,save,http,impact,memory]",
  );
  process.exit(0);
}

const out = join(import.meta.dirname, "..", "out");
// Not below this repository: it ignores what its benchmarks write, and kit keeps to that.
const root = join(tmpdir(), `kit-bench-repository-${values.files}`);
const rounds = Number(values.rounds);
const expected = values.only?.split(",");

interface Pair {
  readonly floor_ms: number;
  readonly subject_ms: number;
}
interface Spread {
  readonly p50_ms: number;
  readonly max_ms: number;
}

async function measure<Value>(name: string, round = 0): Promise<Value> {
  const script = join(import.meta.dirname, "measure.ts");
  const { stdout } = await promisify(execFile)(process.execPath, [script, name, root, String(round)]);
  return JSON.parse(stdout) as Value;
}

const median = (numbers: readonly number[]): number =>
  [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
const ms = (value: number): string => `${value < 10 ? value.toFixed(2) : value.toFixed(0)} ms`;

/** Runs a comparison in fresh processes, and takes the medians of both sides. */
async function compare(name: string, title: string, target: number): Promise<Result> {
  const pairs: Pair[] = [];
  for (let round = 0; round < rounds; round += 1) pairs.push(await measure<Pair>(name, round));
  const floor = median(pairs.map(({ floor_ms }) => floor_ms));
  const subject = median(pairs.map(({ subject_ms }) => subject_ms));
  const ratios = pairs.map((pair) => (pair.subject_ms / pair.floor_ms).toFixed(1)).join(" ");
  return {
    name: title,
    value: subject / floor,
    unit: "×",
    target,
    detail: `${ms(subject)} against ${ms(floor)}; runs: ${ratios}`,
  };
}

async function measureCold(): Promise<Result> {
  const runs: (Pair & { readonly cpu_ms: number })[] = [];
  for (let round = 0; round < rounds; round += 1) runs.push(await measure("cold", round));
  const floor = median(runs.map(({ floor_ms }) => floor_ms));
  const cpu = median(runs.map(({ cpu_ms }) => cpu_ms));
  return {
    name: "cold index, complete",
    value: median(runs.map(({ subject_ms }) => subject_ms)),
    unit: "ms",
    target: 5000,
    detail: `${ms(cpu)} of processor time; reading the lines alone ${ms(floor)}`,
  };
}

/** Measures the server of a project that is not indexed yet. */
async function measureFirst(): Promise<Result[]> {
  const runs: Readonly<Record<"answer_ms" | "file_ms" | "delay_max_ms" | "delay_p99_ms", number>>[] = [];
  for (let round = 0; round < rounds; round += 1) runs.push(await measure("first"));
  const of = (name: keyof (typeof runs)[number]): number => median(runs.map((run) => run[name]));
  const detail = "from opening";
  return [
    { name: "cold project: first answer", value: of("answer_ms"), unit: "ms", target: 1000, detail },
    { name: "cold project: guidelines of a file", value: of("file_ms"), unit: "ms", target: 1000, detail },
    {
      name: "longest wait of the event loop meanwhile",
      value: of("delay_max_ms"),
      unit: "ms",
      target: 50,
      detail: `p99 ${ms(of("delay_p99_ms"))}`,
    },
  ];
}

/** Latencies of a keep-alive client, one request after the other. */
async function latencies(port: number, paths: readonly string[]): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const times: number[] = [];
  for (const path of paths) {
    const start = performance.now();
    const call = request({ port, path, agent, host: "127.0.0.1" });
    call.end();
    const [response] = await once(call, "response");
    for await (const _chunk of response);
    if (response.statusCode !== 200) throw new Error(`${path} answered ${response.statusCode}.`);
    times.push(performance.now() - start);
  }
  agent.destroy();
  return times.sort((a, b) => a - b);
}

async function measureHttp(sources: readonly string[]): Promise<Result[]> {
  const server = spawn(process.execPath, [join(import.meta.dirname, "serve.ts"), root], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const [output] = await once(server.stdout, "data");
    const port = Number(String(output).trim());
    const text = createRandomText(5);
    const count = 2000;
    // Words as they occur in the text, so frequent ones are asked for often.
    const searches = Array.from({ length: count }, () => {
      const q = encodeURIComponent(text.words(1 + text.below(3)));
      return `/api/specs?q=${q}&limit=20`;
    });
    const files = Array.from({ length: count }, () => {
      const folder = text.pick(sources).split("/").slice(0, 2).join("/");
      return `/api/guidelines?file=${encodeURIComponent(`${folder}/src/part-1/${text.oneWord()}.ts`)}&limit=20`;
    });
    const results: Result[] = [];
    for (const [name, paths] of [
      ["GET /api/specs?q=", searches],
      ["GET /api/guidelines?file=", files],
    ] as const) {
      // The first requests compile what the others use.
      await latencies(port, paths.slice(0, 50));
      const times = await latencies(port, paths);
      const at = (share: number): number => times[Math.floor(share * times.length)] ?? Number.NaN;
      const detail = `p50 ${ms(at(0.5))}, p90 ${ms(at(0.9))}, max ${ms(times.at(-1) ?? Number.NaN)}`;
      results.push({ name: `${name} p99`, value: at(0.99), unit: "ms", target: 10, detail });
    }
    return results;
  } finally {
    server.kill("SIGTERM");
    await once(server, "close");
  }
}

function show(results: readonly Result[]): void {
  const rows = results.map(({ name, value, unit, target, detail }) => [
    name,
    unit === "×" ? `${value.toFixed(2)}×` : `${value.toFixed(value < 10 ? 2 : 0)} ${unit}`,
    `≤ ${target}${unit === "×" ? "×" : ` ${unit}`}`,
    value <= target ? "met" : "missed",
    detail,
  ]);
  const header = ["measurement", "result", "target", "", "detail"];
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  for (const row of [header, ...rows]) {
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    );
  }
}

mkdirSync(out, { recursive: true });
const list = join(root, ".kit-bench-sources");
if (!existsSync(list)) {
  rmSync(root, { recursive: true, force: true });
  const start = performance.now();
  const generated = generateRepository({ root, files: Number(values.files), seed: 7 });
  writeFileSync(list, generated.sources.join("\n"));
  console.log(`Generated ${generated.sources.length} files in ${ms(performance.now() - start)}.`);
}
const sources = readFileSync(list, "utf8").split("\n");
// kit reads files twice that were just written, and the first run would pay for it.
await measure("warm");

const isWanted = (name: string): boolean => expected === undefined || expected.includes(name);
const results: Result[] = [];
if (isWanted("cold")) results.push(await measureCold());
if (isWanted("first")) results.push(...(await measureFirst()));
if (isWanted("warm")) results.push(await compare("warm", "warm start, to stat", 1.5));
if (isWanted("save")) {
  const { p50_ms, max_ms } = await measure<Spread>("save");
  results.push({
    name: "one save to its answer",
    value: p50_ms,
    unit: "ms",
    target: 50,
    detail: `max ${ms(max_ms)}`,
  });
}
if (isWanted("http")) results.push(...(await measureHttp(sources)));
if (isWanted("impact")) {
  const { p50_ms, max_ms } = await measure<Spread>("impact");
  results.push({
    name: "impact of 50 files",
    value: p50_ms,
    unit: "ms",
    target: 50,
    detail: `max ${ms(max_ms)}`,
  });
}
if (isWanted("memory")) {
  const { peak_mb } = await measure<{ peak_mb: number }>("memory");
  results.push({
    name: "peak memory, cold index",
    value: peak_mb,
    unit: "MB",
    target: 500,
    detail: "of the process",
  });
}
show(results);
const machine = { node: process.version, cpu: cpus()[0]?.model, cores: cpus().length, load: loadavg()[0] };
const report = { date: new Date().toISOString(), machine, files: sources.length, rounds, results };
writeFileSync(join(out, "project.json"), `${JSON.stringify(report, null, 2)}\n`);
