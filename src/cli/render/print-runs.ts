import type { RunRecord, RunStatus } from "../../protocol/run.ts";
import type { Output, Style } from "../output.ts";
import { type Column, printTable } from "../table.ts";

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
  { header: "WORKFLOW", value: ({ workflow }) => workflow },
  { header: "STATUS", value: ({ status }) => status, style: ({ status }) => runStyles[status] },
  { header: "STARTED", value: ({ started_at }) => started_at ?? "", style: () => "dim" },
  {
    header: "MS",
    value: ({ duration_ms }) => (duration_ms === undefined ? "" : String(Math.round(duration_ms))),
    align: "right",
  },
  { header: "ERROR", value: ({ error }) => error?.message ?? "", style: () => "red", cut: "end" },
];

export function printRuns(output: Output, runs: readonly RunRecord[]): void {
  if (runs.length === 0) output.note("There is no such run. 'kit invoke <workflow>' starts one.");
  else printTable(output, runs, columns);
}
