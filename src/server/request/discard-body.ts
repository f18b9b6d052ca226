import type { IncomingMessage } from "node:http";

/** Beyond these, a client that goes on sending is answered while it does. */
const most = { bytes: 64 * 1024 * 1024, ms: 10_000 } as const;

/**
 * Lets what is left of a body arrive, and throws it away; resolves at once when nothing is left. A
 * connection that is closed over bytes that nobody has read is reset, and its client may lose the reply.
 */
export async function discardBody(incoming: IncomingMessage): Promise<void> {
  if (incoming.complete || incoming.destroyed) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, most.ms);
  let bytes = 0;
  const onData = (chunk: Uint8Array): void => {
    bytes += chunk.length;
    if (bytes > most.bytes) resolve();
  };
  const stop = (): void => resolve();
  incoming.on("data", onData).on("end", stop).on("error", stop).on("close", stop).resume();
  await promise;
  clearTimeout(timer);
  incoming.off("data", onData).off("end", stop).off("error", stop).off("close", stop);
}
