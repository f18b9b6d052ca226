import { taskIdOf } from "../operations/task-id.ts";
import type { ToolContext } from "../tool.ts";
import { taskOfPart } from "./backend-work.ts";
import type { TurnLoop } from "./turn-loop.ts";

/** Tells of an agent of the backend that goes on from here, as of a task. */
export async function beginPart(
  loop: TurnLoop,
  part: { readonly task_agent: string; readonly prompt: string },
  call: ToolContext,
): Promise<void> {
  const task_id = await taskIdOf(call.idempotency_key);
  const { tool_call_id, turn_id: turnId = "" } = call;
  const before = taskOfPart(loop.work.whole.part, turnId);
  endPart(loop, false);
  loop.work.whole.part = { task_id, turnId, before, startedAt: loop.clock.now() };
  loop.emit({ type: "task_start", task_id, tool_call_id, ...part }, turnId);
}

/** Runs a backend, again for each repair, and tells that the agent is done which goes on at its end, where there is one. */
export async function withParts<Answer>(loop: TurnLoop, run: () => Promise<Answer>): Promise<Answer> {
  let failed = true;
  try {
    const answer = await run();
    failed = false;
    return answer;
  } finally {
    endPart(loop, failed);
  }
}

function endPart({ work, clock, emit }: TurnLoop, is_error: boolean): void {
  const { part } = work.whole;
  if (part === undefined) return;
  work.whole.part = undefined;
  const duration_ms = clock.now() - part.startedAt;
  emit({ type: "task_end", task_id: part.task_id, is_error, duration_ms }, part.turnId);
}
