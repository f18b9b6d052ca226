import { eventTypes } from "../protocol/enums.ts";
import type { EventType, KitEvent } from "../protocol/event.ts";

const known: ReadonlySet<EventType> = new Set(eventTypes);

/** Whether this client knows what the event says; those of a newer server are skipped. */
export function isKnownEvent(event: KitEvent): boolean {
  return known.has(event.type);
}
