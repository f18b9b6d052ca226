import { hostname } from "node:os";
import { isoTime } from "../base/clock.ts";
import { version } from "../base/own-package.ts";
import type { ClusterProblem, ClusterState } from "../protocol/cluster.ts";
import type { Engine, EngineLoad } from "./contract.ts";

/** The nodes of an engine and their work; for an engine without `state`, this process as the only node. */
export async function clusterStateOf(engine: Engine): Promise<ClusterState> {
  if (engine.state !== undefined) return await engine.state();
  const { durable, distributed } = engine.capabilities;
  const load = await engine.load();
  const problem = engine.problem?.() ?? engine.warning?.();
  const now = Date.now();
  return {
    engine: durable ? "embedded" : "memory",
    distributed,
    nodes: [
      {
        node: String(process.pid),
        host: hostname(),
        version,
        state: "working",
        started_at: isoTime(now - process.uptime() * 1_000),
        last_beat_at: isoTime(now),
        beat_age_ms: 0,
        shards: 1,
        running: (load.running_dispatches ?? 0) + load.running_runs,
        queued: load.queued_dispatches + load.queued_runs,
        is_this: true,
      },
    ],
    shards: 1,
    unowned_shards: 0,
    ...load,
    running_dispatches: load.running_dispatches ?? 0,
    problems: [
      ...(problem === undefined
        ? []
        : [{ code: "engine_problem" as const, message: problem.message, hint: problem.hint }]),
      ...heldRuns(load),
    ],
  };
}

/** The problem for the operator if runs wait because of their code. */
export function heldRuns({ held_runs: count = 0 }: Pick<EngineLoad, "held_runs">): ClusterProblem[] {
  if (count === 0) return [];
  return [
    {
      code: "held_runs",
      message: `${count === 1 ? "A run waits" : `${count} runs wait`}, because code is missing, broken or does not match the journal.`,
      hint: "`kit runs list --status waiting` shows why. The runs continue after a start with code that fits; cancelling ends them.",
    },
  ];
}
