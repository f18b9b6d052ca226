import type { InstanceTarget } from "../../app/service/service.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { ServiceContext } from "../service-context.ts";
import { encodeEvent, encodeOutcome } from "./server-sent-events.ts";

/** Answers with the events of an instance, for as long as the client listens. */
export function streamInstance(
  { service, streams, toEnvelope }: ServiceContext,
  target: InstanceTarget,
  options: { readonly after?: number; readonly session?: string },
): Response {
  const controller = new AbortController();
  return streams.open(encodeAll(service.events(target, { ...options, signal: controller.signal })), {
    resumable: true,
    onEnd: () => controller.abort(),
    toLastChunk: (error) => encodeOutcome("error", toEnvelope(error)),
  });
}

async function* encodeAll(events: AsyncIterable<KitEvent>): AsyncGenerator<string> {
  for await (const event of events) yield encodeEvent(event);
}
