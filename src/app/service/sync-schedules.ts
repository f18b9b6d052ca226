import { isDeepStrictEqual } from "node:util";
import { KitError } from "../../base/kit-error.ts";
import type { Engine } from "../../engine/contract.ts";
import type { ScheduleRecord } from "../../protocol/run.ts";
import type { LoadedWorkflow } from "../sources/discover-sources.ts";
import type { ProjectSources } from "../sources/sources.ts";

type Schedule = Parameters<Engine["putSchedule"]>[0];

/** Names of schedules that workflow files declare; the program owns all others. */
const prefix = "file:";

/**
 * Puts the schedules that workflow files declare, and takes back those that no file declares any more. One
 * that is there already stays as it is, and so do those of a file that is broken just now: what they missed
 * while no process ran is still to come.
 */
export async function syncSchedules(
  engine: Engine,
  { workflows, problems }: Pick<ProjectSources, "workflows" | "problems">,
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
      await engine.putSchedule(schedule).catch((error: unknown) => onError(unusable(workflow, error)));
    }
  }
  const broken = new Set(problems.map(({ source }) => source?.kind === "workflow" && source.name));
  for (const { name, workflow } of known.values()) {
    const isOurs = name.startsWith(prefix) && !declared.has(name);
    if (isOurs && !broken.has(workflow)) await engine.deleteSchedule(name);
  }
}

function unusable({ path }: LoadedWorkflow, cause: unknown): KitError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new KitError({
    code: "invalid_request",
    message: `The schedule of ${path} cannot be used: ${why}`,
    cause,
  });
}

function isSame(known: ScheduleRecord | undefined, schedule: Schedule): boolean {
  if (known === undefined) return false;
  const { next_at: _, last_run_id: __, ...put } = known;
  return isDeepStrictEqual({ timezone: "UTC", ...put }, { timezone: "UTC", ...schedule });
}
