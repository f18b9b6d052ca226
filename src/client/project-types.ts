import type { BuiltInName } from "../protocol/built-in-workflows.ts";
import type { RunCompleted } from "../protocol/run.ts";
import type { SpecRunBody, SpecRunResult } from "../protocol/spec-run.ts";
import type { Verdict, VerifyRequest } from "../protocol/verdict.ts";

/**
 * The agents and workflows of a project, each by its name with the module of its file. `kit types` writes them to
 * `kit.types.ts`.
 */
export interface ProjectTypes {
  readonly agents: object;
  readonly workflows: object;
}

/** A project without known names: calls accept any name, and payloads and results are JSON. */
export interface AnyProject {
  readonly agents: { readonly [name: string]: unknown };
  readonly workflows: { readonly [name: string]: unknown };
}

export type NameIn<Sources> = keyof Sources & string;

export type WorkflowPayload = Readonly<Record<string, unknown>>;

/** The part of Standard Schema that the types need. */
interface SchemaOf<Input> {
  readonly "~standard": { readonly types?: { readonly input: Input } | undefined };
}

interface Definition<Payload, Result> {
  readonly "~types"?: { readonly payload: (payload: Payload) => void; readonly result: Result } | undefined;
}

/** kit's own workflows, which no file of a project defines. */
interface BuiltIns {
  readonly "kit.spec": Definition<SpecRunBody, SpecRunResult>;
  readonly "kit.verify": Definition<VerifyRequest, Verdict>;
}
/** The workflows that a client can start: those of the project, and kit's own. */
export type Startable<Workflows> = Omit<Workflows, BuiltInName> & {
  readonly [Name in BuiltInName]: BuiltIns[Name];
};

/**
 * The payload of a workflow: from `defineWorkflow` as the default export or as `workflow`, or from the schema `payload`
 * next to `run`.
 */
export type PayloadOf<Module> = Module extends { readonly default: infer Workflow }
  ? PayloadOf<Workflow>
  : Module extends { readonly workflow: infer Workflow }
    ? PayloadOf<Workflow>
    : "~types" extends keyof Module
      ? Module extends Definition<infer Payload, unknown>
        ? Payload
        : WorkflowPayload
      : Module extends { readonly payload: SchemaOf<infer Input> }
        ? Input
        : WorkflowPayload;

/** The `output` of an agent as JSON. */
export type OutputOf<Module> = Module extends { readonly default: infer Agent }
  ? OutputOf<Agent>
  : "~types" extends keyof Module
    ? Module extends { readonly "~types"?: { readonly output: infer Output } | undefined }
      ? Wire<Output>
      : unknown
    : unknown;

/** The result of a workflow as JSON. */
export type ResultOf<Module> = Module extends { readonly default: infer Workflow }
  ? ResultOf<Workflow>
  : Module extends { readonly workflow: infer Workflow }
    ? ResultOf<Workflow>
    : "~types" extends keyof Module
      ? Module extends Definition<never, infer Result>
        ? Wire<Result>
        : unknown
      : Module extends { readonly run: (...given: never[]) => infer Returned }
        ? Wire<Awaited<Returned>>
        : unknown;

/** The outcome of a run; `result` has the type of the workflow's result. */
export type CompletedRun<Result> = unknown extends Result
  ? RunCompleted
  : Omit<RunCompleted, "result"> & { readonly result: Result };

/** A value after JSON: a `Date` is a text; functions and `undefined` are removed. */
export type Wire<Value> = unknown extends Value
  ? unknown
  : Value extends { toJSON(): infer Json }
    ? Wire<Json>
    : Value extends string | number | boolean | null
      ? Value
      : Value extends undefined | symbol | bigint | ((...given: never[]) => unknown)
        ? undefined
        : { [Key in keyof Value]: Wire<Value[Key]> };
