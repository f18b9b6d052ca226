import type { StandardSchemaV1 } from "@standard-schema/spec";
import { toSentence, unknownKey } from "../base/error-text.ts";
import { faultOfSchema } from "../json-schema/schema-fault.ts";
import type { WorkflowReference } from "../protocol/run-calls.ts";
import type { WorkflowContext, WorkflowSchema } from "./workflow-context.ts";

/** A schedule that starts runs of a workflow, as defined in its file. */
export interface WorkflowSchedule<Payload = Readonly<Record<string, unknown>>> {
  /** Five or six fields, as in cron(8). */
  readonly cron: string;
  /** IANA name; default UTC. */
  readonly timezone?: string | undefined;
  readonly payload?: Payload | undefined;
}

/** The default export of a file in `src/workflows`. Make one with `defineWorkflow`. */
export interface WorkflowDefinition<Payload = never, Result = unknown>
  extends WorkflowReference<Payload, Result> {
  readonly payload?: WorkflowSchema | undefined;
  readonly result?: WorkflowSchema | undefined;
  readonly schedule?: string | WorkflowSchedule | readonly (string | WorkflowSchedule)[] | undefined;
  readonly run: (context: never) => unknown;
}

/**
 * The options of `defineWorkflow`. Callers pass `Input`; the schema converts it to `Payload`. `run` returns `Returned`, which
 * `result` accepts as `Accepted` and converts to `Result`.
 */
export interface WorkflowOptions<Input, Payload, Accepted, Returned extends Accepted, Result> {
  /** Validates the payload before a run is accepted; `ctx.payload` is its result. Default: any object. */
  readonly payload?: StandardSchemaV1<Input, Payload> | { readonly [keyword: string]: unknown } | undefined;
  /** Validates the value that `run` returns; an invalid one fails the run with `internal_error`. Default: any JSON. */
  readonly result?: StandardSchemaV1<Accepted, Result> | { readonly [keyword: string]: unknown } | undefined;
  /** A cron expression, or several, with the payload of their runs. */
  readonly schedule?:
    | string
    | WorkflowSchedule<NoInfer<Input>>
    | readonly (string | WorkflowSchedule<NoInfer<Input>>)[]
    | undefined;
  readonly run: (context: WorkflowContext<Payload>) => Returned | Promise<Returned>;
}

const fields = ["payload", "result", "schedule", "run"];

/**
 * Defines a workflow, for the default export of a file in `src/workflows`. The payload and the result are typed by
 * their schemas, and checked by them when the workflow runs. Throws `TypeError` for a field that no workflow has.
 *
 * @example
 * import { defineWorkflow } from "kit";
 * import { z } from "zod";
 *
 * export default defineWorkflow({
 *   payload: z.object({ version: z.string() }),
 *   result: z.object({ published: z.boolean() }),
 *   schedule: { cron: "0 9 * * 1", payload: { version: "nightly" } },
 *   async run(ctx) {
 *     ctx.log.info(`Release ${ctx.payload.version}`);
 *     return { published: true };
 *   },
 * });
 */
export function defineWorkflow<
  Input = Readonly<Record<string, unknown>>,
  Payload = Input,
  Accepted = unknown,
  Returned extends Accepted = Accepted,
  Result = Returned,
>(
  definition: WorkflowOptions<Input, Payload, Accepted, Returned, Result>,
): WorkflowDefinition<Input, Result> {
  const fault = faultOfWorkflow(definition);
  if (fault !== undefined) throw new TypeError(fault);
  return { ...(definition as Omit<WorkflowDefinition<Input, Result>, "kind">), kind: "kit.workflow" };
}

/** Describes the fault of a workflow as a sentence: a file in plain JavaScript may export anything. */
export function faultOfWorkflow(definition: object): string | undefined {
  const { kind: _, run, ...schemas } = definition as Partial<WorkflowDefinition>;
  const unknown = unknownKey({ run, ...schemas }, { of: "field of a workflow", keys: fields });
  if (unknown !== undefined) return toSentence(unknown);
  if (typeof run !== "function") return "A workflow has no `run` function: run: async (ctx) => { … }.";
  for (const name of ["payload", "result"] as const) {
    const schema = schemas[name];
    const fault = schema === undefined ? undefined : faultOfSchema(schema);
    if (fault !== undefined) return toSentence(`\`${name}\` ${fault}`);
  }
  return undefined;
}

export function isWorkflowDefinition(value: unknown): value is WorkflowDefinition {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "kit.workflow";
}

/**
 * The payload that callers pass to a workflow, from its definition or from the module of its file.
 *
 * @example
 * import type { WorkflowPayload } from "kit";
 *
 * type Release = { default: import("kit").WorkflowDefinition<{ version: string }, boolean> };
 * const payload: WorkflowPayload<Release> = { version: "1.2.0" };
 */
export type WorkflowPayload<Workflow> = Workflow extends { readonly default: infer Default }
  ? WorkflowPayload<Default>
  : Workflow extends WorkflowReference<infer Payload, unknown>
    ? Payload
    : Workflow extends { readonly payload: StandardSchemaV1<infer Input, unknown> }
      ? Input
      : Readonly<Record<string, unknown>>;

/** The result of a workflow, from its definition or from the module of its file. */
export type WorkflowOutput<Workflow> = Workflow extends { readonly default: infer Default }
  ? WorkflowOutput<Default>
  : Workflow extends WorkflowReference<never, infer Result>
    ? Result
    : Workflow extends { readonly result: StandardSchemaV1<unknown, infer Output> }
      ? Output
      : Workflow extends { readonly run: (...given: never[]) => infer Returned }
        ? Awaited<Returned>
        : unknown;
