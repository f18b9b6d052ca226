import { isDeepStrictEqual } from "node:util";
import { KitError } from "../../base/kit-error.ts";
import { checkPayload } from "../../base/standard-schema.ts";
import { thrownText } from "../../base/thrown.ts";
import type { Engine } from "../../engine/contract.ts";
import type { ScheduleRecord } from "../../protocol/run.ts";
import { nodesOf } from "../cluster/owners.ts";
import type { LoadedWorkflow } from "../sources/discover-sources.ts";
import type { ProjectSources } from "../sources/sources.ts";

type Schedule = Parameters<Engine["putSchedule"]>[0];

/** Names of schedules that workflow files declare; the program owns all others. */
const prefix = "file:";

/** How often a node looks whether the last one that declares a schedule is gone. */
const otherNodesMs = 5_000;

interface ScheduleSyncOptions {
  readonly engine: Engine;
  /** The files as they are now. */
  readonly sources: () => Pick<ProjectSources, "workflows" | "problems">;
  readonly onError: (error: unknown) => void;
  readonly validateJson: Parameters<typeof checkPayload>[2]["validateJson"];
  /** For tests. */
  readonly everyMs?: number;
}

/** Keeps the schedules of the engine as the workflow files of all its nodes declare them. */
export class ScheduleSync {
  readonly #options: ScheduleSyncOptions;
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(options: ScheduleSyncOptions) {
    this.#options = options;
  }

  /** Call it after each change of the files. Schedules that only the files of other nodes declare go with the last of these nodes. */
  async renew(): Promise<void> {
    clearTimeout(this.#timer);
    const isSettled = await syncSchedules(this.#options);
    if (!isSettled) this.#again();
  }

  stop(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }

  #again(): void {
    clearTimeout(this.#timer);
    if (this.#isOver) return;
    // A database that is away is not a reason to stop.
    this.#timer = setTimeout(
      () => void this.renew().catch(() => this.#again()),
      this.#options.everyMs ?? otherNodesMs,
    ).unref();
  }
}

/**
 * Adds the schedules that workflow files declare, and removes those that no file of any node declares any more. An
 * existing schedule stays unchanged, and so do those of a file that cannot be loaded now: runs that they missed
 * while no process ran still start. False if another node's files declare schedules that these files do not.
 */
async function syncSchedules({
  engine,
  sources,
  onError,
  validateJson,
}: ScheduleSyncOptions): Promise<boolean> {
  const { workflows, problems } = sources();
  const storedSchedules = new Map(
    (await engine.listSchedules()).map((schedule) => [schedule.name, schedule]),
  );
  const files = [...storedSchedules.values()].filter(({ name }) => name.startsWith(prefix));
  const broken = new Set(problems.map(({ source }) => source?.kind === "workflow" && source.name));
  const declared = workflows.flatMap((workflow) =>
    workflow.schedules.map((declaration, index) => {
      const name = `${prefix}${workflow.name}${index === 0 ? "" : `#${index + 1}`}`;
      return { workflow, schedule: { name, workflow: workflow.name, ...declaration } };
    }),
  );
  const keptNames = new Set([
    ...declared.map(({ schedule }) => schedule.name),
    ...files.filter(({ workflow }) => broken.has(workflow)).map(({ name }) => name),
  ]);
  // Said before any is put: a node that finds it in the list finds its declaration, too.
  const elsewhere = await nodesOf(engine).declareSchedules([...keptNames]);
  for (const { workflow, schedule } of declared) {
    try {
      // Each of its runs would fail with this error.
      await checkPayload(workflow.payload, schedule.payload ?? {}, {
        receiver: `the workflow "${workflow.name}"`,
        validateJson,
      });
      if (!isSame(storedSchedules.get(schedule.name), schedule)) await engine.putSchedule(schedule);
    } catch (error) {
      onError(unusable(workflow, error));
    }
  }
  const otherSchedules = files.filter(({ name }) => !keptNames.has(name));
  const removable = otherSchedules.filter(({ name }) => elsewhere?.has(name) === false);
  for (const { name } of removable) await engine.deleteSchedule(name);
  return removable.length === otherSchedules.length;
}

function unusable({ path }: LoadedWorkflow, cause: unknown): KitError {
  const message = `The schedule of ${path} cannot be used: ${thrownText(cause)}`;
  // The place in kit's code where a wrong schedule was noticed does not help its author.
  if (cause instanceof KitError) {
    const { hint, meta } = cause;
    return new KitError({ code: "invalid_request", message, hint, meta });
  }
  return new KitError({ code: "invalid_request", message, cause });
}

function isSame(stored: ScheduleRecord | undefined, schedule: Schedule): boolean {
  if (stored === undefined) return false;
  const { next_at: _, last_run_id: __, ...declaration } = stored;
  return isDeepStrictEqual({ timezone: "UTC", ...declaration }, { timezone: "UTC", ...schedule });
}
