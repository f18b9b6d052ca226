import type { EventListener } from "../../agents/events/emitter.ts";
import type { EventLog } from "../../engine/contract.ts";

/**
 * Tells a listener the events of a stream after an index, until `until` has settled and all that had been
 * said by then was heard. Gives what `until` gives.
 */
export async function followEvents<Value>(
  events: EventLog,
  request: {
    readonly stream: string;
    readonly after: number;
    readonly until: Promise<Value>;
    readonly listener: EventListener;
  },
): Promise<Value> {
  const { stream, after, until, listener } = request;
  const stop = new AbortController();
  let heard = after;
  let last = Number.POSITIVE_INFINITY;
  const reading = (async () => {
    for await (const event of events.subscribe(stream, { after, signal: stop.signal })) {
      heard = event.index;
      await listener(event);
      if (heard >= last) return;
    }
  })();
  // Looked at below; meanwhile it must not count as unhandled.
  reading.catch(() => undefined);
  try {
    return await until;
  } finally {
    last = await events.last(stream);
    if (heard >= last) stop.abort();
    await reading.catch((error: unknown) => {
      if (!stop.signal.aborted) throw error;
    });
  }
}
