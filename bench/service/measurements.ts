import { measureDeltas } from "./measure-deltas.ts";
import { measureAdmission, measureEndToEnd, measureRecovery } from "./measure-dispatches.ts";
import { measureInstances, measureStreams, measureWaitingRuns, measureWebSockets } from "./measure-idle.ts";
import { measureKnown, measureNew } from "./measure-prompts.ts";
import type { SubjectName } from "./subjects.ts";

/** The results of one run of a measurement, by name. */
export type Figures = Readonly<Record<string, number>>;

export interface Measurement {
  readonly title: string;
  readonly subjects: readonly SubjectName[];
  /** Whether it measures durable writes and so needs a disk; otherwise a RAM disk is used, so that disks are not compared. */
  readonly onDisk?: true;
  /** The figures in the table, in this order. */
  readonly figures: readonly Figure[];
  run(subject: SubjectName, folder: string): Promise<Figures>;
}

export interface Figure {
  readonly name: string;
  readonly title: string;
  /** The target for kit. */
  readonly atMost?: number;
  readonly atLeast?: number;
}

export type MeasurementName =
  | "prompts"
  | "prompts_new"
  | "admission"
  | "end_to_end"
  | "deltas"
  | "instances"
  | "streams"
  | "sockets"
  | "waiting"
  | "recovery";

export const measurements: Readonly<Record<MeasurementName, Measurement>> = {
  prompts: {
    title: "prompts, 200 known instances in turn, stored, 32 connections",
    subjects: ["floor", "kit", "kit-repository", "kit-plain", "voltagent", "mastra-server"],
    figures: [
      { name: "per_second", title: "requests/s" },
      { name: "cpu_micros", title: "processor time of the server, µs" },
      { name: "p50_ms", title: "p50, ms" },
      { name: "p99_ms", title: "p99, ms", atMost: 30 },
    ],
    run: measureKnown,
  },
  prompts_new: {
    title: "prompts, a new instance each time, stored, 32 connections",
    subjects: ["floor", "kit", "kit-repository", "kit-plain", "voltagent", "mastra-server"],
    figures: [
      { name: "per_second", title: "requests/s" },
      { name: "cpu_micros", title: "processor time of the server, µs" },
      { name: "p99_ms", title: "p99, ms" },
    ],
    run: measureNew,
  },
  admission: {
    title: "durable dispatches, 64 connections, worked on meanwhile",
    onDisk: true,
    subjects: ["floor", "kit"],
    figures: [
      { name: "per_second", title: "admissions/s", atLeast: 3_000 },
      { name: "p99_ms", title: "p99, ms", atMost: 25 },
      { name: "done_per_second", title: "done/s" },
      { name: "alone_per_second", title: "admissions/s while nothing can be worked on" },
      { name: "alone_p99_ms", title: "p99 of those, ms" },
    ],
    run: measureAdmission,
  },
  end_to_end: {
    title: "one dispatch after the other, from POST to settled",
    onDisk: true,
    subjects: ["kit"],
    figures: [
      { name: "p50_ms", title: "p50, ms", atMost: 5 },
      { name: "p99_ms", title: "p99, ms" },
    ],
    run: measureEndToEnd,
  },
  deltas: {
    title: "from the model's delta to the client, SSE",
    subjects: ["floor", "kit"],
    figures: [
      { name: "first_p50_ms", title: "first delta, p50, ms", atMost: 5 },
      { name: "later_p50_ms", title: "later deltas, p50, ms", atMost: 5 },
      { name: "later_p99_ms", title: "later deltas, p99, ms" },
    ],
    run: measureDeltas,
  },
  instances: {
    title: "10,000 instances, prompted once and idle",
    subjects: ["kit", "kit-repository"],
    figures: [
      { name: "rss_mb", title: "MB resident above the empty server", atMost: 60 },
      { name: "heap_mb", title: "MB in use above the empty server" },
      { name: "peak_mb", title: "MB resident at the peak" },
    ],
    run: measureInstances,
  },
  streams: {
    title: "1,000 open event streams, each of its own instance",
    subjects: ["kit"],
    figures: [
      { name: "heap_mb", title: "MB in use" },
      { name: "rss_mb", title: "MB resident", atMost: 100 },
    ],
    run: measureStreams,
  },
  sockets: {
    title: "1,000 open WebSockets, each of its own instance",
    subjects: ["kit"],
    figures: [
      { name: "heap_mb", title: "MB in use" },
      { name: "rss_mb", title: "MB resident", atMost: 100 },
    ],
    run: measureWebSockets,
  },
  waiting: {
    title: "5,000 workflows that wait",
    subjects: ["kit"],
    figures: [
      { name: "cpu_percent", title: "% of a core more than without", atMost: 0.5 },
      { name: "idle_cpu_percent", title: "% of a core without" },
      { name: "heap_mb", title: "MB in use" },
    ],
    run: measureWaitingRuns,
  },
  recovery: {
    title: "1,000 accepted dispatches after kill -9",
    onDisk: true,
    subjects: ["kit"],
    figures: [
      { name: "first_ms", title: "from start to the first at its model, ms", atMost: 1_000 },
      { name: "listening_ms", title: "from start to listening, ms" },
      { name: "all_ms", title: "from start to all done, ms" },
    ],
    run: measureRecovery,
  },
};

export const measurementNames: readonly MeasurementName[] = Object.keys(measurements) as MeasurementName[];
