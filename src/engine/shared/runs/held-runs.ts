import type { ClusterProblem } from "../../../protocol/cluster.ts";
import type { EngineLoad } from "../../contract.ts";

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
