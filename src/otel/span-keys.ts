import type { KitEvent } from "../protocol/event.ts";
import type { TracePlace } from "../protocol/tracing.ts";

/** The span that an event begins or ends, of those that go on over a crash. */
export function spanOf(event: KitEvent): readonly [key: string, isStart: boolean] | undefined {
  switch (event.type) {
    case "run_start":
    case "run_end":
      return [runKey(event.run_id), event.type === "run_start"];
    case "step_start":
    case "step_end":
      return [stepKey(event), event.type === "step_start"];
    case "operation_start":
    case "operation":
      return [operationKey(event), event.type === "operation_start"];
    case "task_start":
    case "task_end":
      return [taskKey(event), event.type === "task_start"];
    default:
      return undefined;
  }
}

export type Whose = Pick<
  TracePlace,
  "agent" | "instance_id" | "session" | "operation_id" | "turn_id" | "run_id"
>;

export function runKey(runId: string | undefined): string {
  return `run ${runId}`;
}

export function stepKey(event: {
  readonly run_id?: string | undefined;
  readonly step: string;
  readonly step_id?: string | undefined;
}): string {
  return `step ${event.run_id} ${event.step_id ?? event.step}`;
}

/** Ids of operations may be a caller's own: another session may have the same. */
export function operationKey({ agent, instance_id, session, operation_id }: Whose): string {
  return `op ${agent}/${instance_id}/${session} ${operation_id}`;
}

export function turnKey(event: Whose): string {
  return `turn ${event.turn_id} ${operationKey(event)}`;
}

/** Ids of calls are a provider's, and may come again in another turn. */
export function toolKey(event: Whose, callId: string): string {
  return `tool ${callId} ${turnKey(event)}`;
}

export function taskKey({
  agent,
  instance_id,
  task_id,
}: Pick<KitEvent, "agent" | "instance_id" | "task_id">): string {
  return `task ${agent}/${instance_id} ${task_id}`;
}

export function compactionKey(event: Whose): string {
  return `compaction ${operationKey(event)}`;
}
