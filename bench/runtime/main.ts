/**
 * `npm run bench:runtime` compares kit with the floor and its peers, in one run.
 *
 * Every measurement of every subject runs in a separate process; the subjects take turns, so that a
 * busy minute of the machine hits all of them; the table shows medians over the rounds. Exits with 1
 * when a target is missed.
 *
 * `--rounds N` (3), `--only a,b` (measurements), `--subjects a,b`, `--markdown` for the table of `bench/README.md`.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, totalmem } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { build } from "../../scripts/build.ts";
import { kitSetups } from "./kit-setups.ts";
import { type Measurement, type MeasurementName, measurements } from "./measurements.ts";
import { installPeer } from "./peers/install-peer.ts";
import { type PeerName, peerNames, peers } from "./peers/manifest.ts";
import { createLookup, type Sample, toCells, toTable, toVerdicts } from "./report.ts";
import { runChild, scratchRoot } from "./run-child.ts";
import { labels, type SubjectName } from "./subjects.ts";
import { judge, judgeTelemetry, type TelemetryCost } from "./targets.ts";

const allSubjects: readonly SubjectName[] = ["floor", ...kitSetups, ...peerNames];
const allRows = [...(Object.keys(measurements) as MeasurementName[]), "import", "telemetry"] as const;
/** Packages of vendors, which importing kit must not load. */
const vendor = /^(ai|@ai-sdk\/.*|openai|@anthropic-ai\/.*|@google\/.*|pg|@pydantic\/.*|@opentelemetry\/.*)$/;

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "3" },
    only: { type: "string" },
    subjects: { type: "string" },
    markdown: { type: "boolean", default: false },
  },
});
const rounds = Number(values.rounds);
const asked = allRows.filter((row) => values.only === undefined || values.only.split(",").includes(row));
const rows = asked.filter((row) => row !== "telemetry");
const expected = allSubjects.filter(
  (name) => values.subjects === undefined || values.subjects.split(",").includes(name),
);

await build();
const absent = await installPeers(expected);
const subjects = expected.filter((name) => !absent.has(name));
const samples: Sample[] = [];
for (let round = 1; round <= rounds; round += 1) {
  for (const row of rows) {
    for (const subject of subjects) {
      const isAsked =
        row === "import" ? subject === "kit" || isPeer(subject) : takesPart(row, subject, round);
      if (!isAsked) continue;
      console.error(`round ${round}/${rounds}: ${row}, ${labels[subject]}`);
      samples.push(await measure(row, subject));
    }
  }
}
const traced = asked.includes("telemetry")
  ? await runChild<TelemetryCost>(script("telemetry-child.ts"), [])
  : undefined;
const loaded = rows.includes("import") && subjects.includes("kit") ? await loadedByKit() : [];
report();

function takesPart(row: MeasurementName, subject: SubjectName, round: number): boolean {
  const { subjects: able, once }: Measurement = measurements[row];
  return able.includes(subject) && !(once === true && isPeer(subject) && round > 1);
}

function isPeer(subject: SubjectName): subject is PeerName {
  return Object.hasOwn(peers, subject);
}

async function installPeers(names: readonly SubjectName[]): Promise<ReadonlyMap<SubjectName, string>> {
  const failed = new Map<SubjectName, string>();
  for (const name of names.filter(isPeer)) {
    const reason = await installPeer(name, peers[name].packages);
    if (reason !== undefined) failed.set(name, reason);
  }
  return failed;
}

async function measure(row: (typeof rows)[number], subject: SubjectName): Promise<Sample> {
  try {
    const figures =
      row === "import"
        ? await runChild<Record<string, number>>(script("import-child.ts"), [subject])
        : await runChild<Record<string, number>>(script("child.ts"), [row, subject]);
    return { measurement: row, subject, figures };
  } catch (error) {
    const failure = error instanceof Error ? error.message : String(error);
    console.error(failure);
    return { measurement: row, subject, failure };
  }
}

function script(name: string): { readonly file: string } {
  return { file: join(import.meta.dirname, name) };
}

async function loadedByKit(): Promise<readonly string[]> {
  return runChild<string[]>(script("import-child.ts"), ["kit", "packages"]);
}

function report(): void {
  const of = createLookup(samples);
  const verdicts = [...judge(of), ...judgeTelemetry(traced)].filter((verdict) => verdict.value !== undefined);
  const vendors = loaded.filter((name) => vendor.test(name));
  const machine = `${cpus()[0]?.model ?? "unknown"}, ${availableParallelism()} cores, ${Math.round(totalmem() / 2 ** 30)} GB, Node ${process.versions.node}`;
  console.log(`${machine}; ${rounds} rounds; processor time; conversations stored below ${scratchRoot}\n`);
  console.log(toTable(toCells(rows, subjects, of), values.markdown));
  console.log(`\n${toVerdicts(verdicts)}`);
  if (rows.includes("import")) console.log(`\nPackages that importing kit loads: ${loaded.join(", ")}`);
  if (vendors.length > 0) console.log(`MISSED       of these, a vendor's: ${vendors.join(", ")}`);
  for (const [name, reason] of absent) console.log(`${labels[name]} could not be installed: ${reason}`);
  for (const sample of samples.filter(({ failure }) => failure !== undefined)) {
    console.log(`${labels[sample.subject]} failed at ${sample.measurement}.`);
  }
  const out = join(import.meta.dirname, "../out");
  mkdirSync(out, { recursive: true });
  const date = new Date().toISOString();
  writeFileSync(
    join(out, "runtime.json"),
    `${JSON.stringify({ date, machine, rounds, verdicts, loaded, absent: [...absent], samples }, null, 2)}\n`,
  );
  if (vendors.length > 0 || verdicts.some(({ met }) => met === false)) process.exitCode = 1;
}
