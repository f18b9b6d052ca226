import { isStandardSchema, type StandardSchemaV1 } from "../../base/standard-schema.ts";
import type { SourceFile } from "./discover-sources.ts";

/** What a workflow's payload is checked against before a run is accepted. */
export type PayloadSchema = StandardSchemaV1 | Readonly<Record<string, unknown>>;

/** When a workflow runs by itself, as its file says it. */
export interface WorkflowSchedule {
  /** Five or six fields, as cron(8) has them. */
  readonly cron: string;
  /** IANA name; default UTC. */
  readonly timezone?: string;
  readonly payload?: Readonly<Record<string, unknown>>;
}

export interface LoadedWorkflow extends SourceFile {
  readonly kind: "workflow";
  readonly run: (context: never) => unknown;
  readonly payload?: PayloadSchema;
  readonly schedules: readonly WorkflowSchedule[];
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Reads what a workflow file exports. Throws `TypeError` that says what is wrong with it. */
export function toWorkflow(source: SourceFile, module: Record<string, unknown>): LoadedWorkflow {
  const { run, payload, schedule } = module;
  if (typeof run !== "function") {
    throw new TypeError("It exports no run function: export async function run(ctx) { … }.");
  }
  if (payload !== undefined && !isStandardSchema(payload) && !isObject(payload)) {
    throw new TypeError("`payload` must be a schema: of zod, valibot, …, or JSON Schema.");
  }
  return {
    ...source,
    kind: "workflow",
    run: run as LoadedWorkflow["run"],
    ...(payload === undefined ? {} : { payload }),
    schedules: toSchedules(schedule),
  };
}

function toSchedules(schedule: unknown): readonly WorkflowSchedule[] {
  if (schedule === undefined) return [];
  return (Array.isArray(schedule) ? schedule : [schedule]).map((item: unknown): WorkflowSchedule => {
    if (typeof item === "string") return { cron: item };
    if (!isObject(item) || typeof item.cron !== "string") {
      throw new TypeError('`schedule` must be a cron expression such as "0 9 * * 1", or have one as `cron`.');
    }
    const { cron, timezone, payload, ...rest } = item;
    const unknown = Object.keys(rest)[0];
    if (unknown !== undefined) throw new TypeError(`\`schedule.${unknown}\` is not known.`);
    if (timezone !== undefined && typeof timezone !== "string") {
      throw new TypeError('`schedule.timezone` must be a name such as "Europe/Berlin".');
    }
    if (payload !== undefined && !isObject(payload)) {
      throw new TypeError("`schedule.payload` must be an object.");
    }
    return {
      cron: String(cron),
      ...(timezone === undefined ? {} : { timezone }),
      ...(payload === undefined ? {} : { payload }),
    };
  });
}
