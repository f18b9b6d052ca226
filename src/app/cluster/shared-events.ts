import { type ClusterNode, type EngineCluster, NotBegun } from "../../engine/cluster.ts";
import type { EventLog, EventSubscription } from "../../engine/event-log-contract.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { type NodeCalls, ownedByStream } from "./node-calls.ts";
import { isNotBegun, type NodeClient, NodeLost } from "./node-client.ts";

/** How long a reader reads the log before it looks for the owner of its stream again. */
const fromLogMs = 2_000;

interface SharedEventsOptions {
  readonly events: EventLog;
  readonly cluster: EngineCluster;
  readonly client: NodeClient;
}

/**
 * The event log of a node in a cluster: it first asks the node that writes a stream, which knows events that are not in the
 * database yet. If that node is lost, readers continue from the log.
 */
export function createSharedEvents({ events, cluster, client }: SharedEventsOptions): EventLog {
  /** Returns another node that writes the stream. */
  const writerOf = async (stream: string, isFresh = false): Promise<ClusterNode | undefined> => {
    const owned = ownedByStream(stream);
    if (owned === undefined || cluster.owns(owned)) return undefined;
    const owner = await cluster.owner(owned, { fresh: isFresh }).catch(() => undefined);
    return owner?.node === cluster.node || owner?.address === undefined ? undefined : owner;
  };
  const askWriter = async <Value>(
    stream: string,
    {
      ask,
      read,
    }: { readonly ask: (node: ClusterNode) => Promise<Value>; readonly read: () => Promise<Value> },
  ): Promise<Value> => {
    const writer = await writerOf(stream);
    if (writer === undefined) return await read();
    try {
      return await ask(writer);
    } catch (error) {
      if (!isAway(error)) throw error;
      return await read();
    }
  };

  async function* follow(
    stream: string,
    { after: from = 0, id, signal }: EventSubscription,
  ): AsyncGenerator<KitEvent> {
    let after = from;
    for (let isRetry = false; !isOver(signal); isRetry = true) {
      const writer = await writerOf(stream, isRetry);
      if (writer !== undefined) {
        try {
          const call = { name: "events", request: { stream, after, id }, signal } as const;
          for await (const frame of client.frames(writer, call)) {
            if (frame.is !== "event") continue;
            after = frame.event.index;
            yield frame.event;
          }
          return;
        } catch (error) {
          if (isOver(signal)) return;
          if (!isAway(error)) throw error;
        }
      }
      const stop = new AbortController();
      const end = (): void => stop.abort();
      // If this node writes the stream, or no other node does, the log has all events.
      const timer = writer === undefined ? undefined : setTimeout(end, fromLogMs).unref();
      signal?.addEventListener("abort", end, { once: true });
      try {
        for await (const event of events.subscribe(stream, { after, id, signal: stop.signal })) {
          after = event.index;
          yield event;
        }
      } finally {
        clearTimeout(timer);
        signal?.removeEventListener("abort", end);
      }
      if (!stop.signal.aborted) return;
    }
  }

  return {
    last: (stream) =>
      askWriter(stream, {
        ask: (node) => client.ask(node, { name: "lastEvent", request: { stream } }),
        read: () => events.last(stream),
      }),
    async state(stream) {
      const writer = await writerOf(stream);
      if (writer === undefined) return await events.state(stream);
      const asked = client.ask(writer, { name: "streamState", request: { stream } });
      // The log knows the same, with an upper bound for the indexes; a node of an earlier version does not answer.
      return await asked.catch(() => events.state(stream));
    },
    read: (stream, options = {}) =>
      askWriter(stream, {
        ask: (node) => client.ask(node, { name: "readEvents", request: { ...options, stream } }),
        read: () => events.read(stream, options),
      }),
    subscribe: (stream, options = {}) => follow(stream, options),
    begin: (stream) => events.begin(stream),
    append: (stream, event) => events.append(stream, event),
    flush: () => events.flush(),
    end: (stream) => events.end(stream),
    delete: (stream) => events.delete(stream),
  };
}

export type StreamAnswers = Pick<NodeCalls, "events" | "lastEvent" | "streamState" | "readEvents">;

/** Creates the answers to other nodes about the streams that this node writes. */
export function createStreamAnswers(events: EventLog, cluster: EngineCluster): StreamAnswers {
  return {
    async events({ stream, after, id }, { signal, deliver }) {
      for await (const event of events.subscribe(stream, { after, id, signal })) await deliver(event);
      const owned = ownedByStream(stream);
      // A closing log is not the end of the stream.
      if (owned === undefined || !cluster.owns(owned)) throw new NotBegun();
    },
    lastEvent: ({ stream }) => events.last(stream),
    streamState: ({ stream }) => events.state(stream),
    readEvents: ({ stream, ...options }) => events.read(stream, options),
  };
}

function isOver(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

function isAway(error: unknown): boolean {
  return isNotBegun(error) || error instanceof NodeLost;
}
