import { isoTime } from "../../base/clock.ts";
import { textTokens } from "../../base/text-tokens.ts";
import type { Message } from "../../protocol/message.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { CompactionSettings } from "../define/limits.ts";
import { estimateTokens } from "../log/session-state.ts";
import { spentEntries } from "../turn/budget.ts";
import { type CompactionRequest, summarize } from "./summarize.ts";

/** Whether the history leaves too little room for an answer. */
export function needsCompaction(tokens: number, windowTokens: number, settings: CompactionSettings): boolean {
  return settings.enabled && tokens > windowTokens - settings.reserveTokens;
}

/**
 * Shortens the active history: the older part becomes a summary, written by the model; the newer part
 * stays word for word. The log keeps everything. Returns false if there was nothing to shorten.
 */
export async function compact(request: CompactionRequest): Promise<boolean> {
  const { operation, reason, settings } = request;
  const { state } = operation;
  await operation.stored();
  // After an overflow, the provider's window is smaller than configured: keep half as much.
  const keepTokens =
    reason === "overflow" ? Math.floor(settings.keepRecentTokens / 2) : settings.keepRecentTokens;
  const cut = chooseCut(state.messages, Math.min(keepTokens, Math.floor(request.windowTokens / 2)));
  // A summary alone cannot get shorter: rewriting it would cost a call before every turn.
  if (cut === 0 || (cut === 1 && isSummary(state.messages[0]))) return false;
  const before = state.tokens;
  operation.emit({ type: "compaction_start", reason, tokens_before: before });
  let after = before;
  let failed = true;
  try {
    const summary = await summarize(request, state.messages.slice(0, cut));
    const kept = state.messages.slice(cut);
    const shortened = kept.reduce((sum, message) => sum + estimateTokens(message), textTokens(summary));
    const entry: SessionEntry = {
      version: 1,
      type: "compaction",
      keep_from: state.positions[cut] ?? state.position + 1,
      summary,
      tokens_before: before,
      tokens_after: shortened,
      timestamp: isoTime(request.runtime.clock.now()),
      operation_id: operation.id,
    };
    const { clock } = request.runtime;
    const spent = spentEntries(operation.spending, { operationId: operation.id, clock });
    await operation.commit([entry, ...spent]);
    after = shortened;
    failed = false;
    return true;
  } finally {
    operation.emit({
      type: "compaction_end",
      reason,
      tokens_before: before,
      tokens_after: after,
      is_error: failed,
    });
  }
}

function isSummary(message: Message | undefined): boolean {
  return message?.role === "user" && message.source === "summary";
}

/**
 * Chooses the index of the first message to keep, so that what is kept fits into `keepTokens`.
 *
 * The cut never stands between a tool call and its result, and at least the newest exchange stays.
 * Gives 0 when there is nothing to cut.
 */
export function chooseCut(messages: readonly Message[], keepTokens: number): number {
  let tokens = 0;
  let cut = messages.length;
  while (cut > 0) {
    const message = messages[cut - 1];
    if (message === undefined) break;
    tokens += estimateTokens(message);
    if (tokens > keepTokens && cut < messages.length) break;
    cut -= 1;
  }
  // The kept history starts with a user message: some providers refuse a result without its call or an
  // answer without a question. Moving the cut on keeps less and never splits an exchange.
  while (cut < messages.length && messages[cut]?.role !== "user") cut += 1;
  return cut >= messages.length ? lastExchange(messages) : cut;
}

// The newest exchange may alone be larger than what may be kept; it stays whole all the same, from
// the last call of a model on whose results it hangs.
function lastExchange(messages: readonly Message[]): number {
  for (let index = messages.length - 1; index > 0; index -= 1) {
    if (messages[index]?.role === "user") return index;
  }
  for (let index = messages.length - 1; index > 0; index -= 1) {
    if (messages[index]?.role === "assistant") return index;
  }
  return 0;
}
