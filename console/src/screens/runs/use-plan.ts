import { useServer } from "../../api/use-server.ts";
import { type PlannedTask, readPlan } from "./spec-tasks.ts";

/** The plan of a run of `kit.spec`: the result of its first step. */
export function usePlan(runId: string, enabled: boolean): readonly PlannedTask[] | undefined {
  const journal = useServer({
    key: ["runs", "journal", runId, "plan"],
    ask: (client, signal) => client.runs.journal(runId, { limit: 1 }, { signal }),
    enabled,
  });
  const first = journal.data?.entries[0];
  return first === undefined ? undefined : readPlan(first.value);
}
