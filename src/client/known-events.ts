import type { EventType, KitEvent } from "../protocol/event.ts";

/** Every type of event. A type that is missing here does not compile. */
const eventTypes: Readonly<Record<EventType, true>> = {
  operation_start: true,
  operation: true,
  agent_start: true,
  turn_request: true,
  turn: true,
  turn_end: true,
  idle: true,
  abort_requested: true,
  aborted: true,
  error: true,
  text_delta: true,
  reasoning_delta: true,
  tool_start: true,
  tool_end: true,
  approval_request: true,
  approval: true,
  command_start: true,
  command_end: true,
  task_start: true,
  task_end: true,
  gap: true,
  compaction_start: true,
  compaction_end: true,
  run_start: true,
  run_end: true,
  step_start: true,
  step_end: true,
  log: true,
};

/** Whether this client knows what the event says; those of a newer server are skipped. */
export function isKnownEvent(event: KitEvent): boolean {
  return Object.hasOwn(eventTypes, event.type);
}
