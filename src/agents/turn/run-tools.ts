import { isoTime } from "../../base/clock.ts";
import type { ToolCallPart, ToolMessage, ToolResultPart } from "../../protocol/message.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { ToolGate } from "../approvals/call-gate.ts";
import { Suspension } from "../log/suspension.ts";
import { maskValue } from "../secrets.ts";
import { spentEntry } from "./budget.ts";
import { type TurnLoop, toEntry, toolRunOf } from "./loop-parts.ts";
import { keyOf, runToolCalls, type ToolTurn } from "./tool-calls.ts";

/**
 * Runs the calls of the newest message and appends their results. With `interrupted`, the process ended while they
 * ran: only calls that may run twice run again.
 */
export async function runTools(
  loop: TurnLoop,
  calls: readonly ToolCallPart[],
  how: {
    readonly turnId: string;
    readonly interrupted?: boolean;
    readonly suspension?: Suspension | undefined;
  },
): Promise<readonly ToolResultPart[]> {
  const { clock, operation, session } = loop;
  const { log, mask, signal } = operation;
  // The log position is the same in every attempt at these calls; call ids are not unique.
  const callKey = `${operation.id}:${operation.state.positions.at(-1) ?? 0}`;
  const { turnId: id, interrupted = false, suspension } = how;
  const turn: ToolTurn = { id, callKey, interrupted, suspension, postponed: undefined };
  const toolRun = toolRunOf(loop);
  const outcomes = await runToolCalls(calls, turn, toolRun);
  if (outcomes.includes(undefined)) {
    await keepResults(turn, outcomes, toolRun.gate);
    if (signal.reason instanceof Suspension) signal.reason.turnId = id;
    throw signal.aborted ? signal.reason : turn.postponed;
  }
  const content = outcomes as readonly ToolResultPart[]; // No copy: the history keeps this array.
  const message: ToolMessage = { role: "tool", content, timestamp: isoTime(clock.now()) };
  const entries: SessionEntry[] = [toEntry(loop, message)];
  try {
    const adding = signal.aborted ? undefined : session.afterTools(calls);
    if (adding !== undefined) {
      const added = await adding;
      if (added.length > 0) entries.push(...(mask === undefined ? added : maskValue(added, mask)));
    }
  } finally {
    // Results of tools are kept even if a later step fails.
    const spent = spentEntry(operation, clock);
    if (spent !== undefined) entries.push(spent);
    const written = log.commitAhead(entries);
    if (written !== undefined) await written;
  }
  return content;
}

/** The turn continues when the operation resumes, with the results so far. */
async function keepResults(
  turn: ToolTurn,
  outcomes: readonly (ToolResultPart | undefined)[],
  gate: ToolGate,
): Promise<void> {
  const done = outcomes.flatMap((result, at) =>
    result === undefined ? [] : [[keyOf(turn, at), result] as const],
  );
  await gate.keepResults(new Map(done));
}
