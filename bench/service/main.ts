/**
 * `npm run bench:service` compares kit's server with a Hono handler that stores a row and the servers of its peers, in one run.
 *
 * Each measurement starts the subject's server in one process and its client in another. The
 * subjects take turns, so that a busy minute of the machine hits all of them; the table shows medians over
 * the rounds. Exits with 1 when a target is missed.
 *
 * `--rounds N` (3), `--only a,b` (measurements), `--subjects a,b`, `--markdown` for the table of
 * `bench/README.md`.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { build } from "../../scripts/build.ts";
import { installPeer } from "../runtime/peers/install-peer.ts";
import { toTable } from "../runtime/report.ts";
import { runChild, scratchRoot } from "../runtime/run-child.ts";
import { type Figures, measurementNames, measurements } from "./measurements.ts";
import { peerPackages } from "./peers.ts";
import { judge, type Sample, toCells } from "./report.ts";
import { labels, type SubjectName, subjectNames } from "./subjects.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "3" },
    only: { type: "string" },
    subjects: { type: "string" },
    markdown: { type: "boolean", default: false },
  },
});
const rounds = Number(values.rounds);
const rows = measurementNames.filter((row) => values.only?.split(",").includes(row) ?? true);
const expected = subjectNames.filter((name) => values.subjects?.split(",").includes(name) ?? true);

await build();
const absent = await installPeers();
const subjects = expected.filter((name) => !absent.has(name));
const samples: Sample[] = [];
for (let round = 1; round <= rounds; round += 1) {
  for (const row of rows) {
    for (const subject of subjects) {
      if (!measurements[row].subjects.includes(subject)) continue;
      console.error(`round ${round}/${rounds}: ${row}, ${labels[subject]}`);
      samples.push(await measure(row, subject));
    }
  }
}
report();

async function installPeers(): Promise<ReadonlyMap<SubjectName, string>> {
  const failed = new Map<SubjectName, string>();
  for (const name of expected) {
    const packages = peerPackages[name];
    const reason = packages && (await installPeer(name, packages));
    if (reason !== undefined) failed.set(name, reason);
  }
  return failed;
}

async function measure(measurement: Sample["measurement"], subject: SubjectName): Promise<Sample> {
  try {
    const root = measurements[measurement].onDisk === true ? tmpdir() : scratchRoot;
    const script = { file: join(import.meta.dirname, "child.ts"), root };
    const figures = await runChild<Figures>(script, [measurement, subject]);
    return { measurement, subject, figures };
  } catch (error) {
    console.error(error);
    return { measurement, subject };
  }
}

function report(): void {
  const [load = 0] = loadavg();
  const cores = `${cpus()[0]?.model ?? "unknown"}, ${availableParallelism()} cores`;
  const machine = `${cores}, Node ${process.versions.node}, load ${load.toFixed(1)}; ${rounds} rounds`;
  const verdicts = judge(samples);
  console.log(`${machine}\n\n${toTable(toCells({ rows, subjects, samples }), values.markdown)}\n`);
  for (const { text, met } of verdicts) console.log(`${met ? "met   " : "MISSED"}  ${text}`);
  for (const [name, reason] of absent) console.log(`${labels[name]} could not be installed: ${reason}`);
  const failed = samples.filter(({ figures }) => figures === undefined);
  for (const sample of failed) console.log(`${labels[sample.subject]} failed at ${sample.measurement}.`);
  const out = join(import.meta.dirname, "../out");
  mkdirSync(out, { recursive: true });
  const date = new Date().toISOString();
  const data = { date, machine, verdicts, absent: [...absent], samples };
  writeFileSync(join(out, "service.json"), `${JSON.stringify(data, null, 2)}\n`);
  const kitFailed = failed.some(({ subject }) => subject === "kit");
  if (kitFailed || verdicts.some(({ met }) => !met)) process.exitCode = 1;
}
