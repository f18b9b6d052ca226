/**
 * `npm run bench:build` measures the output of `kit build` of a new project for each target that runs on this machine (megabytes, files, seconds),
 * and how long its server takes from its start to the first answer of /health, compared with the same project served by the installed package,
 * and with the builds of Mastra and Flue of the same agent.
 *
 * `--rounds N` (5 starts, of which the least counts), `--peers <folder>`: where the packages of Mastra and Flue are, or are installed.
 */
import { execFile } from "node:child_process";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { availableParallelism, cpus, loadavg, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs, promisify } from "node:util";
import { build } from "../../scripts/build.ts";
import { repositoryRoot } from "../../scripts/files.ts";
import { measureKit } from "./kit-rows.ts";
import { measurePeers } from "./peer-rows.ts";
import type { Row } from "./row.ts";

const { values } = parseArgs({
  options: { rounds: { type: "string", default: "5" }, peers: { type: "string" } },
});
const rounds = Number(values.rounds);
if (!Number.isSafeInteger(rounds) || rounds < 1) throw new Error("--rounds takes a count from 1.");

await build();
const work = await realpath(await mkdtemp(join(tmpdir(), "kit-bench-build-")));
const project = join(work, "project");
try {
  await promisify(execFile)(process.execPath, [join(repositoryRoot, "bin/kit.mjs"), "init", project]);
  const load = loadavg()[0]?.toFixed(1);
  const [cpu] = cpus();
  console.log(
    `${cpu?.model}, ${availableParallelism()} cores, Node ${process.versions.node}, load ${load} at the start; the least of ${rounds} starts\n`,
  );
  console.log(
    "|  | build | size | files | start to /health | processor time |\n| --- | --- | --- | --- | --- | --- |",
  );
  const peers = values.peers === undefined ? undefined : resolve(values.peers);
  for await (const row of measureKit({ project, work, rounds })) console.log(toLine(row));
  for await (const row of measurePeers(peers, rounds)) console.log(toLine(row));
  console.log(`\nLoad at the end: ${loadavg()[0]?.toFixed(1)}`);
} finally {
  await rm(work, { recursive: true, force: true });
}

function toLine({ label, buildMs, size, start, note }: Row): string {
  if (note !== undefined) return `| ${label} | ${note.trim().split("\n")[0]} | | | | |`;
  const cells = [
    label,
    buildMs === undefined ? "–" : `${(buildMs / 1_000).toFixed(1)} s`,
    size === undefined ? "–" : `${(size.bytes / 1e6).toFixed(1)} MB`,
    size === undefined ? "–" : size.files.toLocaleString("en"),
    start === undefined ? "–" : `${Math.round(start.wallMs)} ms`,
    start === undefined ? "–" : `${Math.round(start.cpuMs)} ms`,
  ];
  return `| ${cells.join(" | ")} |`;
}
