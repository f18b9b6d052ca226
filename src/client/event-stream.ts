import type { KitEvent } from "../protocol/event.ts";
import { follow } from "./follow.ts";
import type { Call } from "./route-call.ts";
import { connectionLost, fromEnvelope } from "./to-kit-error.ts";
import type { Transport } from "./transport.ts";

/** Follows a stream that has events only. */
export async function* followEvents(
  transport: Transport,
  call: Call & { readonly after?: number | undefined },
): AsyncGenerator<KitEvent, void> {
  for await (const item of follow(transport, call)) {
    if (item.kind !== "event") throw fromEnvelope(item.body) ?? connectionLost();
    yield item.event;
  }
}
