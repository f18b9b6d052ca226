import { openConnection, type Reply } from "./http-connection.ts";

export interface LoadOptions {
  readonly port: number;
  readonly connections: number;
  /** Returns the request with this number, encoded in advance. */
  readonly request: (index: number) => Buffer;
  /** The number of requests, or the duration; with both, whichever ends first. */
  readonly until: { readonly count?: number; readonly ms?: number };
  readonly onReply?: (reply: Reply) => void;
}

export interface LoadFigures {
  readonly count: number;
  readonly per_second: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
}

/** Sends requests over several connections, sequentially on each. Throws if a reply is not a success. */
export async function measureLoad(options: LoadOptions): Promise<LoadFigures> {
  const { port, request, until, onReply } = options;
  const connections = await Promise.all(
    Array.from({ length: options.connections }, () => openConnection(port)),
  );
  const times: number[] = [];
  let next = 0;
  const since = performance.now();
  const isOver = (): boolean =>
    next >= (until.count ?? Number.POSITIVE_INFINITY) ||
    performance.now() - since >= (until.ms ?? Number.POSITIVE_INFINITY);
  await Promise.all(
    connections.map(async (connection) => {
      while (!isOver()) {
        const bytes = request(next);
        next += 1;
        const at = performance.now();
        const reply = await connection.send(bytes);
        times.push(performance.now() - at);
        if (reply.status >= 300) throw new Error(`${reply.status}: ${reply.body.slice(0, 300)}`);
        onReply?.(reply);
      }
    }),
  );
  const ms = performance.now() - since;
  for (const connection of connections) connection.close();
  return {
    count: times.length,
    per_second: (times.length * 1_000) / ms,
    p50_ms: quantile(times, 0.5),
    p99_ms: quantile(times, 0.99),
  };
}

export function quantile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((left, right) => left - right);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
