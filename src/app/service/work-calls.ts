import type { AgentRuntime } from "../../agents/agent-runtime.ts";
import type { KnownRule } from "../../agents/project-context.ts";
import { defined } from "../../base/record.ts";
import type { AdmitRequest, Engine } from "../../engine/contract.ts";
import type { DispatchReceipt } from "../../protocol/dispatch.ts";
import type { ApplicationCalls, Dispatch, RunCalls } from "../../protocol/run-calls.ts";
import type { FullStore } from "../../stores/full-store.ts";
import type { WorkTraces } from "../runtime/observers.ts";
import type { WorkflowRuntime } from "../runtime/run-workflow.ts";
import type { Sources } from "../sources/sources.ts";
import { checkCallerCalls } from "./caller-calls.ts";
import type { Caller } from "./input.ts";
import type { Service } from "./service.ts";
import { toDispatchInput, toIdempotencyKey, toSessionKey } from "./session-input.ts";
import { joins, operationOf } from "./stored-input.ts";
import { keepsNothing } from "./work-errors.ts";
import type { WorkSlots } from "./work-slots.ts";
import type { WorkflowRuns } from "./workflow-runs.ts";

export interface WorkCallsOptions {
  readonly sources: Sources;
  readonly engine: Engine;
  readonly slots: WorkSlots;
  readonly traces: Pick<WorkTraces, "ofCaller">;
  readonly store: FullStore;
  /** The rules of the project. */
  readonly rules: () => Promise<readonly KnownRule[]>;
  /** Whether inputs can be dispatched. */
  readonly keepsWork: boolean;
}

/** Accepts work for the engine, in the name of its sender: dispatched inputs, forks and runs. */
export class WorkCalls {
  readonly #options: WorkCallsOptions;
  #runs: Pick<WorkflowRuns, "callsFor"> | undefined;

  constructor(options: WorkCallsOptions) {
    this.#options = options;
  }

  /** Connects the runs, once: agents need these calls to start runs, and runs need agents. */
  connect(runs: Pick<WorkflowRuns, "callsFor">): void {
    this.#runs = runs;
  }

  /** The calls of a sender that is known when the calls are created. */
  ofSender(sender: Caller = {}): ApplicationCalls {
    const { slots } = this.#options;
    return {
      dispatch: (...input) => this.dispatch(input, sender),
      ...this.#runCalls(() =>
        sender.principal === undefined ? { ...slots.principal(), ...sender } : sender,
      ),
    };
  }

  /** The calls of an agent's code: its work has the principal and the cause of the running work. */
  ofAgent(...[parent_run_id, operation]: AgentCaller): ApplicationCalls {
    const { slots } = this.#options;
    const cause = () => slots.causeOf(operation, parent_run_id);
    return {
      dispatch: (...input) => this.dispatch(input, { cause: cause() }),
      ...this.#runCalls(() => ({ ...slots.principal(), parent_run_id, cause: cause() })),
    };
  }

  /** Dispatches an input; resolves once it is on disk. */
  async dispatch(
    [agent, input]: Parameters<Dispatch>,
    { principal, cause, received_at }: Caller & Pick<AdmitRequest, "received_at"> = {},
  ): Promise<DispatchReceipt> {
    const { engine, slots, traces } = this.#options;
    const admitted = this.toAdmitted(agent, input);
    const idempotency_key = toIdempotencyKey(input.idempotencyKey);
    await checkCallerCalls(engine, admitted, { tools: input.tools, idempotencyKey: idempotency_key });
    return await engine.admit({
      ...admitted,
      ...defined({ idempotency_key, cause, received_at }),
      ...(principal === undefined ? slots.principal() : { principal }),
      ...traces.ofCaller(),
    });
  }

  /** Converts a dispatched input for the engine. Throws `unavailable` if the application stores no work. */
  toAdmitted(...[agent, input]: Parameters<Dispatch>): ReturnType<WorkflowRuntime["toAdmitted"]> {
    const { id, session = "default", input: value, idempotencyKey: _, ...choices } = input;
    const name = this.#options.sources.agentName(agent);
    if (!this.#options.keepsWork) throw keepsNothing();
    const key = toSessionKey({ agent: name, instance_id: id, session });
    const stored = toDispatchInput(value, choices);
    return { ...key, input: stored, ...(joins(stored) && { joins: true }) };
  }

  /** `Service.fork`. */
  async fork(
    ...[target, choices = {}, { principal } = {}]: Parameters<Service["fork"]>
  ): ReturnType<Service["fork"]> {
    const { sources, engine, store, slots, traces, keepsWork, rules } = this.#options;
    sources.checkAgent(target.agent);
    if (!keepsWork) throw keepsNothing();
    const { toForkedInput } = await import("./forks.ts");
    const { key, input } = await toForkedInput({ store, events: engine.events, rules }, target, choices);
    const receipt = await engine.admit({
      ...key,
      input,
      ...(principal === undefined ? slots.principal() : senderOf(principal)),
      ...traces.ofCaller(),
    });
    const { dispatch_id, accepted_at } = receipt;
    return { dispatch_id, accepted_at, session: key.session, operation_id: operationOf(dispatch_id) };
  }

  #runCalls(origin: Parameters<WorkflowRuns["callsFor"]>[0]): RunCalls {
    if (this.#runs === undefined) throw new Error("`connect` was not called.");
    return this.#runs.callsFor(origin);
  }
}

type AgentCaller = Parameters<NonNullable<AgentRuntime["callsOf"]>>;

/** A caller with a principal is the cause of its work. */
export function senderOf(principal: string | undefined): Caller {
  return principal === undefined ? {} : { principal, cause: { type: "sender", principal } };
}
