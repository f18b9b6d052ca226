import { isDeepStrictEqual } from "node:util";
import type { Engine } from "../../engine/contract.ts";
import type { ScheduleRecord } from "../../protocol/run.ts";
import type { LoadedWorkflow } from "../agents/workflow-source.ts";

type Schedule = Parameters<Engine["putSchedule"]>[0];

/** Names of schedules that workflow files declare; others are somebody else's. */
const prefix = "file:";

/**
 * Puts the schedules that workflow files declare, and takes back those that no file declares any more. One
 * that is there already stays as it is: what it missed while nobody ran is still to come.
 */
export async function syncSchedules(
  engine: Engine,
  workflows: readonly LoadedWorkflow[],
  onError: (error: unknown) => void,
): Promise<void> {
  const known = new Map((await engine.listSchedules()).map((schedule) => [schedule.name, schedule]));
  const declared = new Set<string>();
  for (const workflow of workflows) {
    for (const [index, declaration] of workflow.schedules.entries()) {
      const name = `${prefix}${workflow.name}${index === 0 ? "" : `#${index + 1}`}`;
      declared.add(name);
      const schedule = { name, workflow: workflow.name, ...declaration };
      if (isSame(known.get(name), schedule)) continue;
      await engine.putSchedule(schedule).catch(onError);
    }
  }
  for (const name of known.keys()) {
    if (name.startsWith(prefix) && !declared.has(name)) await engine.deleteSchedule(name);
  }
}

function isSame(known: ScheduleRecord | undefined, schedule: Schedule): boolean {
  if (known === undefined) return false;
  const { next_at: _, last_run_id: __, ...put } = known;
  return isDeepStrictEqual({ timezone: "UTC", ...put }, { timezone: "UTC", ...schedule });
}
