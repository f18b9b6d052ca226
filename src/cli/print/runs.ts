import type { RunRecord, RunStatus, RunWait } from "../../protocol/run.ts";
import { span, withDistance } from "../text/safe-text.ts";
import type { Output, Style } from "./output.ts";
import { type Column, printTable, timeColumn } from "./table.ts";

/** How the state of a run looks. */
export const runStyles: Readonly<Record<RunStatus, Style>> = {
  completed: "green",
  failed: "red",
  cancelled: "yellow",
  running: "cyan",
  waiting: "cyan",
  queued: "dim",
};

const columns: readonly Column<RunRecord>[] = [
  { header: "RUN", value: ({ run_id }) => run_id, style: () => "cyan" },
  { header: "WORKFLOW", value: ({ workflow }) => workflow, wraps: true },
  { header: "STATUS", value: ({ status }) => status, style: ({ status }) => runStyles[status] },
  timeColumn("STARTED", ({ started_at }) => started_at),
  {
    header: "TOOK",
    value: ({ duration_ms }) => (duration_ms === undefined ? "" : String(Math.round(duration_ms))),
    forPeople: ({ duration_ms }) => (duration_ms === undefined ? "" : span(duration_ms)),
    align: "right",
  },
  {
    header: "ERROR",
    value: ({ error, problem }) => (error ?? problem)?.message ?? "",
    style: () => "red",
    wraps: true,
  },
  { header: "WAITS FOR", value: (run) => waitLines(run).join(", "), style: () => "cyan", wraps: true },
];

/** The most waits to print; others are counted. */
const mostWaits = 5;

/** The waits of a run, a line each: `approval until 2026-11-28T09:00:00.000Z (in 2 d)`. */
export function waitLines({ waiting_for: waits = [] }: RunRecord): readonly string[] {
  const rest = waits.length - mostWaits;
  return [...waits.slice(0, mostWaits).map(waitLine), ...(rest > 0 ? [`${rest} more`] : [])];
}

function waitLine({ signal, run_id, until }: RunWait): string {
  if (run_id !== undefined) return `the run ${run_id}`;
  const time = withDistance(until);
  if (signal === undefined) return time ?? "a time in the far future";
  return time === undefined ? signal : `${signal} until ${time}`;
}

export function printRuns(output: Output, runs: readonly RunRecord[]): void {
  if (runs.length === 0) output.note("No run to show. 'kit invoke <workflow>' starts one.");
  else printTable(output, runs, columns);
}
