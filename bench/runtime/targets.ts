import type { MeasurementName } from "./measurements.ts";
import type { SubjectName } from "./subjects.ts";

/** The median figures of each measurement and subject; undefined where a subject has none. */
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

const storingPeers: readonly SubjectName[] = ["langgraph", "mastra"];

/** The targets of the runtime, judged by the figures of one run. */
export function judge(of: Lookup): readonly Verdict[] {
  const pi = (measurement: MeasurementName): number | undefined => of(measurement, "pi");
  const bestStoring = Math.min(
    ...storingPeers.map((peer) => of("loop_stored", peer) ?? Number.POSITIVE_INFINITY),
  );
  return [
    atMost(
      "one turn in memory, µs: at most 2× pi-agent-core",
      of("turn_memory", "kit"),
      times(pi("turn_memory"), 2),
    ),
    atMost(
      "five-turn loop in memory, µs: faster than pi-agent-core",
      of("loop_memory", "kit"),
      pi("loop_memory"),
    ),
    atMost(
      "five-turn loop stored, µs: at most 2× the floor",
      of("loop_stored", "kit"),
      times(of("loop_stored", "floor"), 2),
    ),
    atMost(
      "five-turn loop stored, µs: a fifth of the best peer with a store",
      of("loop_stored", "kit"),
      Number.isFinite(bestStoring) ? bestStoring / 5 : undefined,
    ),
    atMost("turn 1,000 stored: at most 2× turn 10", of("growth", "kit"), 2),
    atMost(
      "reopening 1,000 turns, µs: at most 2× reading the rows",
      of("reopen", "kit"),
      times(of("reopen", "floor"), 2),
    ),
    atLeast("1,000 sessions at once, stored: 1,500 loops/s", of("concurrent", "kit"), 1_500),
    atMost(
      "1,000 sessions at once: under 200 MB RSS at the peak",
      of("concurrent", "kit", "peak_rss_mb"),
      200,
    ),
    atMost("a streamed delta to a listener: at most 6 µs", of("delta_listen", "kit"), 6),
    atMost("a streamed delta to an iteration: at most 6 µs", of("delta_stream", "kit"), 6),
    atMost("importing kit: under 150 ms", of("import", "kit"), 150),
  ];
}

function times(value: number | undefined, factor: number): number | undefined {
  return value === undefined ? undefined : value * factor;
}

function atMost(target: string, value: number | undefined, limit: number | undefined): Verdict {
  const met = value === undefined || limit === undefined ? undefined : value <= limit;
  return { target, value, limit, met };
}

function atLeast(target: string, value: number | undefined, limit: number): Verdict {
  return { target, value, limit, met: value === undefined ? undefined : value >= limit };
}
