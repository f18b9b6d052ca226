import type { MeasurementName } from "./measurements.ts";
import { labels, type SubjectName } from "./subjects.ts";

/** Returns the median figure of a measurement and subject; `undefined` if there is none. */
export type Lookup = (
  measurement: MeasurementName | "import",
  subject: SubjectName,
  figure?: string,
) => number | undefined;

export interface Verdict {
  readonly target: string;
  readonly value: number | undefined;
  readonly limit: number | undefined;
  readonly met: boolean | undefined;
}

const asItComes: readonly SubjectName[] = ["kit", "kit-repository"];

/** Judges the targets of the runtime by the figures of one run. */
export function judge(of: Lookup): readonly Verdict[] {
  const stored = asItComes.flatMap((subject) => {
    const loop = of("loop_stored", subject);
    return [
      atMost(
        `five-turn loop stored, ${labels[subject]}: at most 2.2× the floor`,
        loop,
        times(of("loop_stored", "floor"), 2.2),
      ),
      atMost(
        `five-turn loop stored, ${labels[subject]}: at most 1.15× kit with its features off`,
        loop,
        times(of("loop_stored", "kit-plain"), 1.15),
      ),
      atLeast(
        `1,000 sessions at once, stored, ${labels[subject]}: at least half of the floor`,
        of("concurrent", subject),
        times(of("concurrent", "floor"), 0.5),
      ),
    ];
  });
  const besidePi = asItComes.flatMap((subject) => [
    atMost(
      `one turn in memory, ${labels[subject]}: at most 1.5× pi-agent-core`,
      of("turn_memory", subject),
      times(of("turn_memory", "pi"), 1.5),
    ),
    atMost(
      `five-turn loop in memory, ${labels[subject]}: faster than pi-agent-core`,
      of("loop_memory", subject),
      of("loop_memory", "pi"),
    ),
    atLeast(
      `1,000 sessions at once, in memory, ${labels[subject]}: more than pi-agent-core`,
      of("concurrent_memory", subject),
      of("concurrent_memory", "pi"),
    ),
    atMost(
      `a delta to a listener, ${labels[subject]}: at most what it takes pi-agent-core`,
      of("delta_listen", subject),
      of("delta_listen", "pi"),
    ),
  ]);
  return [
    ...stored,
    ...besidePi,
    atMost("turn 1,000 stored: at most 2× turn 10", of("growth", "kit"), 2),
    atMost(
      "reopening 1,000 turns: at most 2× reading the rows",
      of("reopen", "kit"),
      times(of("reopen", "floor"), 2),
    ),
    atMost("importing kit: under 150 ms", of("import", "kit"), 150),
  ];
}

/** The additional cost of a traced turn, in µs of processor time. */
export interface TelemetryCost {
  readonly withoutSdk: number;
  readonly withOtlp: number;
}

export function judgeTelemetry(cost: TelemetryCost | undefined): readonly Verdict[] {
  return [
    atMost("a traced turn without an SDK: at most 15 µs", cost?.withoutSdk, 15),
    atMost("a traced turn, sent in batches by OTLP: at most 40 µs", cost?.withOtlp, 40),
  ];
}

function times(value: number | undefined, factor: number): number | undefined {
  return value === undefined ? undefined : value * factor;
}

function atMost(target: string, value: number | undefined, limit: number | undefined): Verdict {
  const met = value === undefined || limit === undefined ? undefined : value <= limit;
  return { target, value, limit, met };
}

function atLeast(target: string, value: number | undefined, limit: number | undefined): Verdict {
  const met = value === undefined || limit === undefined ? undefined : value >= limit;
  return { target, value, limit, met };
}
