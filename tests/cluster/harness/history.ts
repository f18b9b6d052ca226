/** The record of a cluster test; times are ms since 1970, of one machine. */
export type HistoryEntry =
  /** A sender got its receipt; a sender sends the inputs of its line one after the other. */
  | { readonly what: "accepted"; readonly at: number; readonly id: string; readonly line: string }
  /** Changes of rows, which triggers of the database have recorded. */
  | {
      readonly what: "claimed" | "settled";
      readonly at: number;
      readonly id: string;
      readonly line: string;
      readonly shard: number;
      readonly fence: number;
      readonly status: string;
    }
  | { readonly what: "owned"; readonly at: number; readonly shard: number; readonly fence: number }
  /** An effect of work outside the database, in the process of a node. */
  | {
      readonly what: "begin" | "end" | "lost";
      readonly at: number;
      readonly line: string;
      readonly node: number;
      /** The id of the effect, the same in each attempt. */
      readonly effect: string;
    }
  /** A fault that the test has caused in a node's process. */
  | { readonly what: "killed" | "frozen"; readonly at: number; readonly node: number };

export type Violation =
  | "lost"
  | "unknown"
  | "settled twice"
  | "settled by a stale owner"
  | "out of order"
  | "overlap"
  | "fence fell";

export interface Finding {
  readonly kind: Violation;
  readonly text: string;
}

type Row = Extract<HistoryEntry, { what: "claimed" | "settled" }>;
type Stop = Extract<HistoryEntry, { what: "killed" | "frozen" }>;
type Effect = Extract<HistoryEntry, { what: "begin" | "end" | "lost" }>;

/** Tolerance for times: the database and the processes read the same clock at different moments of a millisecond. */
const slackMs = 2;

/**
 * Checks what must hold under all faults of nodes, network and database: nothing lost, nothing settled twice or by a
 * stale owner, the order of each line kept, no two owners working on one line, rising fences. Returns the violations.
 */
export function checkHistory(entries: readonly HistoryEntry[]): readonly Finding[] {
  const history = entries.toSorted((left, right) => left.at - right.at);
  return [
    ...checkSettlements(history),
    ...checkOrder(history),
    ...checkFences(history),
    ...checkEffects(history),
  ];
}

function checkSettlements(history: readonly HistoryEntry[]): readonly Finding[] {
  const accepted = new Set(history.filter(isAccepted).map(({ id }) => id));
  const claims = new Map<string, Row>();
  const settled = new Map<string, number>();
  const findings: Finding[] = [];
  for (const row of history.filter(isRow)) {
    if (row.what === "claimed") claims.set(row.id, row);
    else {
      settled.set(row.id, (settled.get(row.id) ?? 0) + 1);
      const claim = claims.get(row.id);
      if (claim !== undefined && claim.fence !== row.fence) {
        findings.push({
          kind: "settled by a stale owner",
          text: `${row.id}: claimed ${claim.fence}, settled ${row.fence}`,
        });
      }
    }
  }
  for (const id of accepted) if (!settled.has(id)) findings.push({ kind: "lost", text: id });
  for (const [id, times] of settled) {
    if (times > 1) findings.push({ kind: "settled twice", text: `${id}: ${times} times` });
    if (!accepted.has(id))
      findings.push({ kind: "unknown", text: `${id} was settled, and no caller has a receipt` });
  }
  return findings;
}

/** Inputs of a line are settled in the order of their receipts, and each is claimed after the previous one was settled. */
function checkOrder(history: readonly HistoryEntry[]): readonly Finding[] {
  const findings: Finding[] = [];
  const settledAt = new Map(
    history.filter(isRow).flatMap((row) => (row.what === "settled" ? [[row.id, row.at] as const] : [])),
  );
  const claimedAt = new Map(
    history.filter(isRow).flatMap((row) => (row.what === "claimed" ? [[row.id, row.at] as const] : [])),
  );
  for (const [line, inputs] of byLine(history.filter(isAccepted))) {
    for (const [index, { id }] of inputs.entries()) {
      const before = settledAt.get(inputs[index - 1]?.id ?? "");
      const claimed = claimedAt.get(id);
      if (before === undefined || claimed === undefined) continue;
      if (claimed < before - slackMs) findings.push({ kind: "out of order", text: `${line}: ${id}` });
    }
  }
  return findings;
}

/** A shard's fence rises with each owner, and no claim has an old fence of its shard. */
function checkFences(history: readonly HistoryEntry[]): readonly Finding[] {
  const findings: Finding[] = [];
  const fences = new Map<number, number>();
  for (const entry of history) {
    if (entry.what === "owned") {
      const before = fences.get(entry.shard) ?? 0;
      if (entry.fence <= before) {
        findings.push({ kind: "fence fell", text: `shard ${entry.shard}: ${entry.fence} after ${before}` });
      }
      fences.set(entry.shard, Math.max(before, entry.fence));
    }
    if (entry.what === "claimed" && entry.fence < (fences.get(entry.shard) ?? 0)) {
      findings.push({ kind: "fence fell", text: `${entry.id} was claimed under ${entry.fence}` });
    }
  }
  return findings;
}

interface Interval {
  readonly node: number;
  readonly effect: string;
  readonly from: number;
  to: number;
}

/**
 * No two nodes work on one line: an effect lasts until it ends, its node is killed, or its signal fires with `lease_lost`.
 * A frozen process does nothing, so its effects count as ended; another check covers what it settles after it wakes.
 */
function checkEffects(history: readonly HistoryEntry[]): readonly Finding[] {
  const findings: Finding[] = [];
  for (const [line, effects] of byLine(history.filter(isEffect))) {
    const stopped = history.filter(isStop);
    const intervals = toIntervals(effects, stopped);
    for (const interval of intervals) {
      for (const other of intervals) {
        if (interval.node === other.node || other.from < interval.from || interval === other) continue;
        if (other.from < interval.to - slackMs) {
          findings.push({
            kind: "overlap",
            text: `${line}: ${interval.effect} of node ${interval.node} until ${interval.to}, ${other.effect} of node ${other.node} from ${other.from}`,
          });
        }
      }
    }
  }
  return findings;
}

function toIntervals(effects: readonly Effect[], stopped: readonly Stop[]): readonly Interval[] {
  const intervals: Interval[] = [];
  const open = new Map<string, Interval>();
  for (const { what, node, effect, at } of effects) {
    const name = `${node} ${effect}`;
    if (what === "begin") {
      const end = stopped.find((stop) => stop.node === node && stop.at >= at)?.at ?? Number.POSITIVE_INFINITY;
      const interval = { node, effect, from: at, to: end };
      intervals.push(interval);
      open.set(name, interval);
      continue;
    }
    const interval = open.get(name);
    if (interval !== undefined) interval.to = Math.min(interval.to, at);
    open.delete(name);
  }
  return intervals;
}

function byLine<Entry extends { readonly line: string }>(
  entries: readonly Entry[],
): ReadonlyMap<string, readonly Entry[]> {
  return Map.groupBy(entries, ({ line }) => line);
}

function isAccepted(entry: HistoryEntry): entry is Extract<HistoryEntry, { what: "accepted" }> {
  return entry.what === "accepted";
}

function isRow(entry: HistoryEntry): entry is Row {
  return entry.what === "claimed" || entry.what === "settled";
}

function isStop(entry: HistoryEntry): entry is Stop {
  return entry.what === "killed" || entry.what === "frozen";
}

function isEffect(entry: HistoryEntry): entry is Effect {
  return entry.what === "begin" || entry.what === "end" || entry.what === "lost";
}
