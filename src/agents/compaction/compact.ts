import { isoTime } from "../../base/clock.ts";
import type { CompactionReason } from "../../protocol/event.ts";
import type { Message } from "../../protocol/message.ts";
import { textOf } from "../../protocol/message.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { Operation } from "../agent-runtime.ts";

import { callModel, InterruptedReply, type ModelCall } from "../turn/call-model.ts";
import { toModelFailure } from "../turn/retry.ts";
import { chooseCut } from "./choose-cut.ts";
import type { CompactionSettings } from "./compaction-settings.ts";
import { estimateTokens, textTokens } from "./estimate-tokens.ts";

export interface CompactionRequest {
  readonly operation: Operation;
  readonly reason: CompactionReason;
  readonly settings: CompactionSettings;
  readonly windowTokens: number;
  readonly call: Pick<ModelCall, "model" | "idleTimeoutMs">;
  readonly now: () => number;
  /** What the summary should keep in view, from the caller of `compact`. */
  readonly focus?: string;
}

/** Whether the history has grown past what leaves room for an answer. */
export function needsCompaction(tokens: number, windowTokens: number, settings: CompactionSettings): boolean {
  return settings.enabled && tokens > windowTokens - settings.reserveTokens;
}

/**
 * Shortens the active history: the older part becomes a summary, written by the model; the newer part
 * stays word for word. The log keeps everything. False when there was nothing to shorten.
 */
export async function compact(request: CompactionRequest): Promise<boolean> {
  const { operation, reason, settings } = request;
  const { state } = operation;
  // After an overflow the provider's window is smaller than was thought: keep half as much.
  const keepTokens =
    reason === "overflow" ? Math.floor(settings.keepRecentTokens / 2) : settings.keepRecentTokens;
  const cut = chooseCut(state.messages, Math.min(keepTokens, Math.floor(request.windowTokens / 2)));
  if (cut === 0) return false;
  const before = state.tokens;
  operation.emit({ type: "compaction_start", reason, tokens_before: before });
  const end = (after: number, isError: boolean): void =>
    operation.emit({
      type: "compaction_end",
      reason,
      tokens_before: before,
      tokens_after: after,
      is_error: isError,
    });
  try {
    const summary = await summarize(request, state.messages.slice(0, cut));
    const kept = state.messages.slice(cut);
    const after = kept.reduce((sum, message) => sum + estimateTokens(message), textTokens(summary));
    const entry: SessionEntry = {
      version: 1,
      type: "compaction",
      keep_from: state.positions[cut] ?? state.position + 1,
      summary,
      tokens_before: before,
      tokens_after: after,
      timestamp: isoTime(request.now()),
    };
    await operation.commit([entry]);
    end(after, false);
    return true;
  } catch (error) {
    end(before, true);
    if (error instanceof InterruptedReply && !operation.signal.aborted)
      throw toModelFailure(error.cause, request.now()).error;
    throw operation.signal.aborted ? operation.signal.reason : error;
  }
}

async function summarize(request: CompactionRequest, messages: readonly Message[]): Promise<string> {
  const { operation, windowTokens, settings } = request;
  const limitTokens = Math.max(1_000, windowTokens - settings.reserveTokens - 1_000);
  const transcript = transcriptOf(messages, limitTokens * 3);
  const focus = request.focus === undefined ? "" : `\nKeep in view: ${request.focus}`;
  const reply = await callModel({
    ...request.call,
    signal: operation.signal,
    onDelta: () => undefined,
    options: {
      prompt: [
        { role: "system", content: instructions },
        { role: "user", content: [{ type: "text", text: `${transcript}\n\n${wanted}${focus}` }] },
      ],
      maxOutputTokens: Math.min(settings.reserveTokens, 8_192),
    },
  });
  const text = reply.content
    .map((part) => (part.type === "text" ? part.text : ""))
    .join("")
    .trim();
  return `Summary of the conversation so far:\n\n${text === "" ? transcript.slice(-8_000) : text}`;
}

const instructions =
  "You write down what a colleague needs to go on with a piece of work. You add nothing of your own.";

const wanted = `Summarize the conversation above for the model that continues it. Keep: the goal and what
was asked, word for word where the wording matters; decisions and their reasons; files read and changed,
with paths; commands and their results; errors and how they were solved; what is open and what comes next.`;

/** The conversation as text, the newest part whole when it is too long for one call. */
function transcriptOf(messages: readonly Message[], maxChars: number): string {
  const lines: string[] = [];
  for (const message of messages) {
    const text = textOf(message);
    if (text !== "") lines.push(`[${message.role}] ${text}`);
    for (const part of message.content) {
      if (part.type === "tool_call") lines.push(`[call ${part.tool}] ${JSON.stringify(part.args)}`);
      if (part.type === "tool_result") {
        const result = part.content.map((item) => (item.type === "text" ? item.text : "[image]")).join("");
        lines.push(`[result ${part.tool}${part.is_error ? ", failed" : ""}] ${result.slice(0, 4_000)}`);
      }
    }
  }
  const whole = lines.join("\n");
  return whole.length <= maxChars ? whole : `[… the beginning is cut …]\n${whole.slice(-maxChars)}`;
}
