import type { ClusterNodeState, ClusterState } from "../../protocol/cluster.ts";
import { urlOption } from "../client/open-client.ts";
import { withProjectWork } from "../client/project-work.ts";
import { type Command, defineCommand } from "../command.ts";
import type { Output, Style } from "../print/output.ts";
import { type Column, count, printFields, printTable, timeColumn } from "../print/table.ts";
import { safeLine, span, withDistance } from "../text/safe-text.ts";

export const cluster: Command = defineCommand({
  options: { url: urlOption },
  examples: ["kit cluster", "kit cluster --json"],
  details:
    "Asks the server that runs for this project; without one it reads the engine's store. Exits with 1 when there is a problem: a silent node, different versions, clocks that differ, work without an owner. If one process does all of the work, it is the only node.",
  run: ({ options }, context) =>
    withProjectWork(context, options.url, async (work) => {
      const state = await work.cluster();
      if (context.json) context.output.json(state);
      else print(state, context.output);
      return state.problems.length === 0 ? 0 : 1;
    }),
});

const stateStyles: Readonly<Record<ClusterNodeState["state"], Style>> = {
  working: "green",
  draining: "yellow",
  silent: "red",
};

const columns: readonly Column<ClusterNodeState>[] = [
  { header: "NODE", value: ({ node }) => node.slice(0, 8), style: () => "cyan" },
  { header: "ADDRESS", value: ({ address, host }) => address ?? host },
  { header: "VERSION", value: ({ version }) => version, style: () => "dim" },
  { header: "STATE", value: ({ state }) => state, style: ({ state }) => stateStyles[state] },
  timeColumn("STARTED", ({ started_at }) => started_at),
  {
    header: "BEAT",
    value: ({ beat_age_ms }) => String(beat_age_ms),
    forPeople: ({ beat_age_ms }) => span(beat_age_ms),
    align: "right",
  },
  { header: "SHARDS", value: ({ shards }) => String(shards), align: "right" },
  { header: "RUNS", value: ({ running }) => String(running), align: "right" },
  { header: "WAITS", value: ({ queued }) => String(queued), align: "right" },
];

function print(state: ClusterState, output: Output): void {
  printTable(output, state.nodes, columns);
  if (state.nodes.length === 0) output.note("No node works.");
  if (output.isTerminal) {
    output.line();
    printFields(output, [
      ["engine", `${state.engine}${state.distributed ? `, ${state.shards} shards` : ""}`],
      [
        "inputs",
        `${state.running_dispatches} at work, ${state.queued_dispatches} waiting, ${state.dead_letters} failed`,
      ],
      [
        "runs",
        `${state.running_runs} at work, ${state.queued_runs} waiting to begin, ${state.waiting_runs} suspended${state.held_runs ? `, ${state.held_runs} of them because of their code` : ""}`,
      ],
      ["oldest", withDistance(state.oldest_queued_at)],
    ]);
  }
  if (state.problems.length > 0) output.note(`${count(state.problems.length, "problem")}:`);
  for (const { message, hint } of state.problems) {
    output.note(`${output.noteStyle("red", "problem:")} ${safeLine(message)}`);
    if (hint !== undefined) output.note(`${output.noteStyle("dim", "hint:")} ${safeLine(hint)}`);
  }
}
