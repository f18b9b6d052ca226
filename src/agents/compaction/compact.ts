import type { LanguageModelV4Message } from "@ai-sdk/provider";
import { isoTime } from "../../base/clock.ts";
import { createId } from "../../base/id.ts";
import { textTokens } from "../../base/text-size.ts";
import type { ResolvedModel } from "../../models/contract.ts";
import type { CompactionReason } from "../../protocol/event.ts";
import type { Message } from "../../protocol/message.ts";
import { textOf } from "../../protocol/read-records.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { SessionStore } from "../../stores/contract.ts";
import type { AgentRuntime, Harness, Operation } from "../agent-runtime.ts";
import type { CompactionSettings } from "../define/profile-settings.ts";
import { estimateTokens } from "../log/session-state.ts";
import type { CompactOptions } from "../operations/options.ts";
import { openModels } from "../operations/prepare.ts";
import { keepHead, keepMessages } from "../prompt/turn-records.ts";
import { spentEntry, toUsage } from "../turn/budget.ts";
import { CallWatch, callModel, InterruptedReply, type ModelReply } from "../turn/call-model.ts";
import { planRetry } from "../turn/retry.ts";
import { emitTurnFailed } from "../turn/turn-loop.ts";
import { compactionOf, reportedSettings } from "../turn/turn-settings.ts";

/**
 * Shortens the active history: the older part becomes a summary, written by the model; the newer part
 * stays word for word. The log keeps everything. Returns false if there was nothing to shorten.
 */
async function compact(request: CompactionRequest): Promise<boolean> {
  const { operation, reason, settings } = request;
  const { state } = operation;
  await operation.log.stored();
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
    const keptMessages = state.messages.slice(cut);
    const shortened = keptMessages.reduce(
      (sum, message) => sum + estimateTokens(message),
      textTokens(summary),
    );
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
    const spent = spentEntry(operation, request.runtime.clock);
    await operation.log.commit(spent === undefined ? [entry] : [entry, spent]);
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
 * The cut never separates a tool call from its result, and at least the newest exchange stays.
 * Returns 0 if there is nothing to cut.
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
  // answer without a question. A later cut keeps less and never splits an exchange.
  while (cut < messages.length && messages[cut]?.role !== "user") cut += 1;
  return cut >= messages.length ? lastExchange(messages) : cut;
}

// The newest exchange is kept even if it alone exceeds the limit: from the last user message on or, if only the first
// message is from the user, from the last answer on.
function lastExchange(messages: readonly Message[]): number {
  for (let index = messages.length - 1; index > 0; index -= 1) {
    if (messages[index]?.role === "user") return index;
  }
  for (let index = messages.length - 1; index > 0; index -= 1) {
    if (messages[index]?.role === "assistant") return index;
  }
  return 0;
}

/** Everything that one compaction needs. */
interface CompactionRequest {
  readonly operation: Operation;
  readonly reason: CompactionReason;
  readonly settings: CompactionSettings;
  /** The window of the model that continues with the shortened history. */
  readonly windowTokens: number;
  /** The model that writes the summary. */
  readonly writer: ResolvedModel;
  readonly runtime: Pick<AgentRuntime, "clock" | "retry" | "modelIdleTimeoutMs">;
  /** Stores the prompts and answers of the compaction, which are in no log. */
  readonly store: SessionStore;
  /** Topic that the summary should cover, from the caller of `compact`. */
  readonly focus?: string | undefined;
}

/** How many times a transcript is halved if it exceeds the writer's window. */
const maxHalvings = 4;

const instructions =
  "You write down what a colleague needs to go on with a piece of work. You add nothing of your own.";

const instruction = `Summarize the conversation above for the model that continues it. Keep: the goal and what
was asked, word for word where the wording matters; decisions and their reasons; files read and changed,
with paths; commands and their results; errors and how they were solved; what is open and what comes next.`;

/** Characters of a transcript that replaces a summary. */
const maxQuoted = 8_000;

/**
 * Lets a model summarize a conversation, with the retries of turns; the cost counts as spending. A model that only
 * quotes is not called: the newest part of the conversation takes the place of the summary.
 */
async function summarize(request: CompactionRequest, messages: readonly Message[]): Promise<string> {
  const { operation, windowTokens, settings } = request;
  if (request.writer.quotesOnly === true) {
    const quoted = transcriptOf(messages, Math.min(maxQuoted, windowTokens));
    return `The conversation so far, word for word as far as it is kept:\n\n${quoted}`;
  }
  const limitTokens = Math.max(1_000, windowTokens - settings.reserveTokens - 1_000);
  const turnId = createId("turn");
  try {
    const summary = await summarizeTranscript(request, transcriptOf(messages, limitTokens * 3), turnId);
    operation.emit({ type: "turn_end", tool_calls: 0 }, turnId);
    return `Summary of the conversation so far:\n\n${summary}`;
  } catch (error) {
    emitTurnFailed(operation, turnId, 0);
    throw error;
  }
}

async function summarizeTranscript(
  request: CompactionRequest,
  fullTranscript: string,
  turnId: string,
): Promise<string> {
  const { operation } = request;
  let transcript = fullTranscript;
  let halvings = 0;
  for (let attempt = 1; ; attempt += 1) {
    try {
      const reply = await write(request, { transcript, turnId, attempt });
      const text = reply.content.map((part) => (part.type === "text" ? part.text : "")).join("");
      return text.trim() === "" ? transcript.slice(-maxQuoted) : text.trim();
    } catch (error) {
      if (!(error instanceof InterruptedReply)) throw error;
      if (operation.signal.aborted) throw operation.signal.reason;
      const { clock, retry } = request.runtime;
      const plan = planRetry(error.cause, attempt - halvings, { clock, retry, failures: operation.failures });
      const halves = plan.failure.overflow && halvings < maxHalvings;
      if (plan.retries || halves) operation.emit({ ...plan.event, will_retry: true }, turnId);
      else await operation.failures.report(plan.failure.error, turnId);
      if (halves) {
        halvings += 1;
        transcript = newestPart(transcript, Math.floor(transcript.length / 2));
      } else if (plan.retries) await clock.sleep(plan.delayMs, operation.signal);
      else throw plan.failure.error;
    }
  }
}

/** Calls the writer once, with the events of a turn, so that cost reports include it. */
async function write(
  request: CompactionRequest,
  call: { readonly transcript: string; readonly turnId: string; readonly attempt: number },
): Promise<ModelReply> {
  const { operation, writer, runtime, settings, store } = request;
  const { mask } = operation;
  const { turnId, attempt } = call;
  operation.spending.check();
  const { provider } = writer.model;
  const focus = request.focus === undefined ? "" : `\nKeep in view: ${request.focus}`;
  const text = `${call.transcript}\n\n${instruction}${focus}`;
  const messages: LanguageModelV4Message[] = [{ role: "user", content: [{ type: "text", text }] }];
  const callSettings = { maxOutputTokens: Math.min(settings.reserveTokens, 8_192) };
  const head = keepHead(store, { system: instructions, tools: [], settings: callSettings, mask, messages });
  operation.emit(
    {
      type: "turn_request",
      model: writer.name,
      provider,
      purpose: "compaction",
      attempt,
      head,
      settings: reportedSettings(callSettings),
    },
    turnId,
  );
  const headers = operation.tracing?.headers({ turn_id: turnId });
  const admission = await writer.limiter?.admit(textTokens(call.transcript), operation.signal);
  const started = runtime.clock.now();
  const { modelIdleTimeoutMs = runtime.modelIdleTimeoutMs } = operation.live.profile;
  using watch = new CallWatch(operation.signal, modelIdleTimeoutMs);
  const reply = await callModel({
    model: writer.model,
    watch,
    reader: { onDelta: () => undefined },
    options: {
      ...(headers === undefined ? undefined : { headers: { ...headers } }),
      prompt: [{ role: "system", content: instructions }, ...messages],
      ...callSettings,
    },
  });
  const usage = toUsage(reply.usage, writer.price);
  admission?.settle(usage.total_tokens);
  operation.spending.addUnlogged(usage);
  operation.emit(
    {
      type: "turn",
      model: writer.name,
      usage,
      finish_reason: reply.finishReason,
      purpose: "compaction",
      answer: keepMessages(store, [answerOf(reply)], mask),
      ...reply.metadata,
      duration_ms: runtime.clock.now() - started,
    },
    turnId,
  );
  return reply;
}

/** The writer's answer as a message. The writer has no tools, so calls in it are dropped. */
function answerOf({ content }: ModelReply): LanguageModelV4Message {
  const parts = content.flatMap((part) =>
    part.type === "tool_call" ? [] : [{ type: part.type, text: part.text }],
  );
  return { role: "assistant", content: parts };
}

/** The conversation as text; if it is too long for one call, only its newest part. */
function transcriptOf(messages: readonly Message[], maxChars: number): string {
  const lines: string[] = [];
  for (const message of messages) {
    const text = textOf(message);
    if (text !== "") lines.push(`[${message.role}] ${text}`);
    for (const part of message.content) {
      if (part.type === "file") lines.push(`[file ${part.filename ?? part.media_type}]`);
      if (part.type === "tool_call") lines.push(`[call ${part.tool}] ${JSON.stringify(part.args)}`);
      if (part.type === "tool_result") {
        const result = part.content.map((item) => (item.type === "text" ? item.text : "[image]")).join("");
        lines.push(`[result ${part.tool}${part.is_error ? ", failed" : ""}] ${result.slice(0, 4_000)}`);
      }
    }
  }
  return newestPart(lines.join("\n"), maxChars);
}

function newestPart(text: string, maxChars: number): string {
  const newest = text.length <= maxChars ? text : `[… the beginning is cut …]\n${text.slice(-maxChars)}`;
  // Providers refuse half of a surrogate pair, which a cut may leave.
  return newest.toWellFormed();
}

/** Shortens a session's history on request of the caller. */
export async function runCompact(
  harness: Pick<Harness, "runtime" | "store">,
  operation: Operation,
  { focus }: CompactOptions,
): Promise<boolean> {
  if (operation.past?.compacted === true) return true;
  const { profile } = operation.live;
  operation.spending.budget = profile.budget ?? {};
  const choice = profile.model ?? harness.runtime.defaultModel;
  const { current: resolved } = await openModels(choice, harness.runtime);
  return compactWith(harness, operation, { reason: "manual", resolved, focus });
}

/** Shortens the history with the model of the settings, else with the one in use. */
export async function compactWith(
  harness: Pick<Harness, "runtime" | "store">,
  operation: Operation,
  wish: {
    readonly reason: CompactionReason;
    readonly resolved: ResolvedModel;
    readonly focus?: string | undefined;
  },
): Promise<boolean> {
  const { runtime } = harness;
  const settings = compactionOf(operation.live.profile);
  const writer = settings.model === undefined ? wish.resolved : await runtime.resolveModel(settings.model);
  return compact({
    operation,
    reason: wish.reason,
    settings,
    // The window of the model that will read the summary counts.
    windowTokens: wish.resolved.contextWindowTokens ?? settings.contextWindowTokens,
    writer,
    runtime,
    store: harness.store,
    focus: wish.focus,
  });
}
