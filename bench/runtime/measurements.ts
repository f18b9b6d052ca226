import { join } from "node:path";
import { kitSetups } from "./kit-setups.ts";
import type { OpenSubject, Subject } from "./subject.ts";
import { deltasPerAnswer } from "./subject.ts";
import type { SubjectName } from "./subjects.ts";
import { medianOf, microsOf, startTime, timeInBlocks } from "./timing.ts";

/** The figures of one child process; the table shows the first one. */
export type Figures = Readonly<Record<string, number>>;

export interface Measurement {
  readonly title: string;
  /** The figure that the table shows, and its unit. */
  readonly figure: string;
  readonly unit: string;
  readonly subjects: readonly SubjectName[];
  /** Peers make long measurements in the first round only. */
  readonly once?: true;
  run(subject: Subject, folder: string): Promise<Figures>;
}

const inMemory: readonly SubjectName[] = [
  "floor",
  ...kitSetups,
  "pi",
  "ai-sdk",
  "openai-agents",
  "langgraph",
  "mastra",
];
const stored: readonly SubjectName[] = ["floor", ...kitSetups, "langgraph", "mastra"];

export type MeasurementName =
  | "turn_memory"
  | "loop_memory"
  | "loop_stored"
  | "growth"
  | "reopen"
  | "concurrent_memory"
  | "concurrent"
  | "delta_stream"
  | "delta_listen";

export const measurements: Readonly<Record<MeasurementName, Measurement>> = {
  turn_memory: {
    title: "one turn, in memory",
    figure: "micros",
    unit: "µs",
    subjects: inMemory,
    run: (subject) => eachInANewSession(subject, { script: "answer" }),
  },
  loop_memory: {
    title: "five-turn tool loop, in memory",
    figure: "micros",
    unit: "µs",
    subjects: inMemory,
    run: (subject) => eachInANewSession(subject, { script: "tools" }),
  },
  loop_stored: {
    title: "five-turn tool loop, stored",
    figure: "micros",
    unit: "µs",
    subjects: stored,
    run: (subject, folder) => eachInANewSession(subject, { script: "tools", file: join(folder, "loop.db") }),
  },
  growth: {
    title: "turn 1,000 of a session, stored, as a multiple of turn 10",
    figure: "ratio",
    unit: "×",
    subjects: stored,
    once: true,
    run: growth,
  },
  reopen: {
    title: "reopening a session of 1,000 turns",
    figure: "micros",
    unit: "µs",
    subjects: ["floor", "kit"],
    run: reopen,
  },
  concurrent_memory: {
    title: "1,000 sessions at once, in memory, a five-turn loop each",
    figure: "loops_per_second",
    unit: "loops/s",
    subjects: inMemory,
    once: true,
    run: (subject) => concurrent(subject, { script: "tools" }),
  },
  concurrent: {
    title: "1,000 sessions at once, stored, a five-turn loop each",
    figure: "loops_per_second",
    unit: "loops/s",
    subjects: stored,
    once: true,
    run: (subject, folder) => concurrent(subject, { script: "tools", file: join(folder, "concurrent.db") }),
  },
  delta_stream: {
    title: "a streamed delta, read by iteration",
    figure: "micros",
    unit: "µs",
    subjects: ["floor", "kit", "kit-repository", "ai-sdk", "openai-agents", "langgraph", "mastra"],
    run: (subject) => deltas(subject, "stream"),
  },
  delta_listen: {
    title: "a streamed delta, heard by a listener",
    figure: "micros",
    unit: "µs",
    subjects: ["floor", "kit", "kit-repository", "pi"],
    run: (subject) => deltas(subject, "listen"),
  },
};

async function eachInANewSession(
  subject: Subject,
  options: Parameters<Subject["open"]>[0],
): Promise<Figures> {
  const opened = await subject.open(options);
  let next = 0;
  const times = await timeInBlocks(() => {
    next += 1;
    return opened.prompt(`session-${next}`);
  });
  await opened.close();
  return { ...times };
}

const turns = 1_000;

async function growth(subject: Subject, folder: string): Promise<Figures> {
  const opened = await subject.open({ script: "answer", file: join(folder, "growth.db") });
  // Turn 10 of many sessions: a single session would be measured before the code is compiled.
  const early: number[] = [];
  const started = performance.now();
  for (let session = 0; session < 200 && performance.now() - started < 5_000; session += 1) {
    for (let turn = 1; turn <= 10; turn += 1) {
      const micros = await microsOf(() => opened.prompt(`short-${session}`));
      if (turn === 10) early.push(micros);
    }
  }
  const late: number[] = [];
  for (let turn = 1; turn <= turns + 10; turn += 1) {
    const micros = await microsOf(() => opened.prompt("long"));
    if (turn > turns - 10) late.push(micros);
  }
  await opened.close();
  const turn10 = medianOf(early.slice(Math.floor(early.length / 2)));
  const turn1000 = medianOf(late);
  return { ratio: turn1000 / turn10, turn_10_micros: turn10, turn_1000_micros: turn1000 };
}

async function reopen(subject: Subject, folder: string): Promise<Figures> {
  const options = { script: "answer", file: join(folder, "reopen.db") } as const;
  const writer = await subject.open(options);
  for (let turn = 0; turn < turns; turn += 1) await writer.prompt("long");
  await writer.close();
  const taken: number[] = [];
  for (let time = 0; time < 30; time += 1) {
    const opened = await subject.open(options);
    let messages = 0;
    taken.push(
      await microsOf(async () => {
        messages = (await opened.reopen?.("long")) ?? 0;
      }),
    );
    await opened.close();
    if (messages < 2 * turns) throw new Error(`Only ${messages} messages came back.`);
  }
  return { micros: medianOf(taken.slice(5)) };
}

const sessionsAtOnce = 1_000;

async function concurrent(subject: Subject, options: Parameters<Subject["open"]>[0]): Promise<Figures> {
  const opened = await subject.open(options);
  await allAtOnce(opened, "warm-up", 100);
  const time = startTime();
  let loops = 0;
  // Fast ones are repeated, with new sessions, until the time is long enough to measure.
  for (let round = 0; round < 5 && time.spentMs() < 2_000; round += 1) {
    await allAtOnce(opened, `round-${round}`, sessionsAtOnce);
    loops += sessionsAtOnce;
  }
  const spent = time.spentMs();
  const clock = time.clockMs();
  await opened.close();
  return {
    loops_per_second: (loops * 1_000) / spent,
    clock_loops_per_second: (loops * 1_000) / clock,
    peak_rss_mb: process.resourceUsage().maxRSS / 1_024,
  };
}

async function allAtOnce(opened: OpenSubject, round: string, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, index) => opened.prompt(`${round}-${index}`)));
}

async function deltas(subject: Subject, how: "stream" | "listen"): Promise<Figures> {
  const opened = await subject.open({ script: "deltas" });
  let next = 0;
  let received = 0;
  const times = await timeInBlocks(async () => {
    next += 1;
    received = 0;
    await opened[how]?.(`session-${next}`, () => {
      received += 1;
    });
    if (received < deltasPerAnswer) throw new Error(`Only ${received} deltas were heard.`);
  });
  await opened.close();
  return {
    micros: times.micros / deltasPerAnswer,
    best_micros: times.best_micros / deltasPerAnswer,
    clock_micros: times.clock_micros / deltasPerAnswer,
  };
}
