import { KitError } from "../../base/kit-error.ts";
import type { Engine } from "../../engine/contract.ts";
import type { WaitingCalls } from "../../engine/waiting-calls-contract.ts";
import type { ApprovalRequest } from "../../protocol/approval.ts";
import type { CallerTool } from "../../protocol/prompt.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";

/** Calls of callers' tools that may wait in one instance: each keeps an operation open until its caller comes back. */
export const maxCallerCalls = 100;

async function callerCalls(
  calls: WaitingCalls,
  { agent, instance_id }: Pick<SessionKey, "agent" | "instance_id">,
): Promise<readonly ApprovalRequest[]> {
  return (await calls.list({ agent, instance_id })).filter(({ kind }) => kind === "caller");
}

/** Whether a call that has just begun to wait is one too many: inputs that came together can pass the check below together. */
export async function isOverLimit(calls: WaitingCalls, request: ApprovalRequest): Promise<boolean> {
  if (request.kind !== "caller") return false;
  const waiting = await callerCalls(calls, request);
  return waiting.findIndex(({ approval_id }) => approval_id === request.approval_id) >= maxCallerCalls;
}

/**
 * Checks that the instance can take an input that brings tools of its caller. An input that was accepted before under its key is not
 * refused. Throws `too_many_requests`.
 */
export async function checkCallerCalls(
  engine: Pick<Engine, "waitingCalls" | "listDispatches">,
  key: SessionKey,
  input: { readonly tools?: readonly CallerTool[] | undefined; readonly idempotencyKey?: string | undefined },
): Promise<void> {
  const { waitingCalls } = engine;
  if (input.tools === undefined || input.tools.length === 0 || waitingCalls === undefined) return;
  const { length } = await callerCalls(waitingCalls, key);
  if (length < maxCallerCalls) return;
  const { agent, instance_id } = key;
  if (input.idempotencyKey !== undefined) {
    const { items } = await engine.listDispatches({ agent, instance_id, limit: 1_000 });
    if (items.some(({ idempotency_key }) => idempotency_key === input.idempotencyKey)) return;
  }
  throw new KitError({
    code: "too_many_requests",
    message: `${length} calls of callers' tools wait in this instance for their results, the most that one instance may have.`,
    hint: "Answer them, or deny them with the reason that there is no result.",
    meta: { scope: "instance", waiting: length },
  });
}
