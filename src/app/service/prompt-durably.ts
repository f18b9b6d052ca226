import type { EventListener } from "../../agents/events/emitter.ts";
import { type AdmitRequest, agentStream, type Engine } from "../../engine/contract.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { PromptReply } from "../../protocol/prompt.ts";
import { followEvents } from "./follow-events.ts";
import { createOperationListeners } from "./operation-listeners.ts";
import { operationOf } from "./session-input.ts";

/**
 * Prompts with an idempotency key: the input outlives who sent it, and the same key waits for the same reply.
 * Its events come from the log, because the work may have begun before, or be done by another process.
 */
export async function promptDurably(
  engine: Engine,
  request: AdmitRequest,
  { signal, onEvent }: { readonly signal?: AbortSignal; readonly onEvent?: EventListener },
): Promise<PromptReply> {
  const wait = signal === undefined ? {} : { signal };
  if (onEvent === undefined) return (await engine.call(request, wait)) as PromptReply;
  const stream = agentStream(request.agent, request.instance_id);
  const after = await engine.events.last(stream);
  const { dispatch_id } = await engine.admit(request);
  const listeners = createOperationListeners(() => undefined);
  listeners.add(operationOf(dispatch_id), onEvent);
  return await followEvents(engine.events, {
    stream,
    after,
    until: engine.call(request, wait) as Promise<PromptReply>,
    listener: (event: KitEvent) => listeners.hear(event),
  });
}
