import type { IncomingMessage } from "node:http";

const arrivals = new WeakMap<IncomingMessage, number>();

/** Notes that a request came. */
export function noteArrival(incoming: IncomingMessage): void {
  arrivals.set(incoming, performance.now());
}

/** When a request came, in ms by `performance.now()`; now for one that came over no connection of this process. */
export function receivedAtOf(incoming: IncomingMessage | undefined): number {
  return (incoming && arrivals.get(incoming)) ?? performance.now();
}
