import { type ForkOrigin, forkEntries } from "../../agents/log/fork.ts";
import { checkRules } from "../../agents/log/left-out-rules.ts";
import type { KnownRule } from "../../agents/project-context.ts";
import { isoTime, systemClock } from "../../base/clock.ts";
import { createId } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import { defined } from "../../base/record.ts";
import { isRule } from "../../protocol/read-records.ts";
import type { ReceiptItem } from "../../protocol/receipt.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import type { ForkBody } from "../../protocol/trace.ts";
import type { SessionStore } from "../../stores/contract.ts";
import type { InstanceTarget } from "./service.ts";
import { toForkInput, toSessionKey } from "./session-input.ts";
import { readTurn, type TraceSources } from "./trace.ts";

export interface ForkSources extends TraceSources {
  /** The rules of the project. */
  readonly rules: () => Promise<readonly KnownRule[]>;
}

/** Returns the session and the stored input that repeat a turn. */
export async function toForkedInput(
  sources: ForkSources,
  target: InstanceTarget & { readonly turn_id: string },
  { session = createId("fork").replace("_", "-"), without = [], ...choices }: ForkBody,
): Promise<{ readonly key: SessionKey; readonly input: unknown }> {
  const { agent, instance_id, turn_id } = target;
  const key = toSessionKey({ agent, instance_id, session });
  const turn = await readTurn(sources, target, { limit: 1 });
  const { log_position } = turn;
  if (turn.purpose !== "agent" || log_position === undefined || turn.missing?.includes("messages") === true)
    throw new KitError({
      code: "invalid_request",
      message: "This turn cannot be forked.",
      hint: "Only turns of the conversation itself can be forked, as long as their history exists.",
    });
  if ((await sources.store.info(key)) !== undefined) throw sessionExists(session);
  const left = await rulesOf(without, sources.rules, turn.receipt ?? []);
  const from = { agent, instance_id, session: turn.session };
  const entries = (await sources.store.read(from)).slice(0, log_position);
  const promptEntry = entries.find(
    (entry) =>
      entry.type === "message" &&
      entry.operation_id === turn.operation_id &&
      entry.message.role === "user" &&
      entry.message.source === undefined,
  );
  const parts = promptEntry?.type === "message" ? promptEntry.message.content : [];
  const message = parts.map((part) => ("text" in part ? part.text : "")).join("");
  const { operation_id } = turn;
  const origin = { session: turn.session, turn_id, log_position, operation_id, without: left };
  const request = { message: message === "" ? `The turn ${turn_id} again.` : message, ...defined(choices) };
  return { key, input: toForkInput(request, origin) };
}

/**
 * Returns the rules that a fork leaves out: those that the caller names, and their ids in receipts of older versions. A rule need not
 * be in the turn's prompt: it can apply to a file that a later turn touches.
 */
async function rulesOf(
  without: readonly string[],
  known: ForkSources["rules"],
  receipt: readonly ReceiptItem[],
): Promise<readonly string[]> {
  if (without.length === 0) return [];
  const rules = await known();
  const inPrompt = receipt.filter(isRule).map(({ id, file = id }) => ({ id, file }));
  checkRules(without, [...rules, ...inPrompt], "without");
  return without.flatMap((name) => {
    const rule = rules.find(({ id, guideline_id }) => id === name || guideline_id === name);
    if (rule === undefined) return name;
    return inPrompt.some(({ id }) => id === rule.guideline_id) ? [rule.id, rule.guideline_id] : rule.id;
  });
}

/** Writes the first entries of a fork once: an attempt after a crash finds them and writes nothing. */
export async function beginFork(
  store: SessionStore,
  key: SessionKey,
  { fork, operationId }: { readonly fork: ForkOrigin; readonly operationId: string },
): Promise<void> {
  const begun = await store.read(key);
  if (begun.some(({ operation_id }) => operation_id === operationId)) return;
  if (begun.length > 0) throw sessionExists(key.session);
  const entries = await store.read({ ...key, session: fork.session });
  if (entries.length < fork.log_position)
    throw new KitError({ code: "not_found", message: "The session of the turn was deleted." });
  const timestamp = isoTime(systemClock.now());
  await store.append({
    key,
    expected: 0,
    entries: forkEntries(entries, fork, { id: operationId, timestamp }),
  });
}

function sessionExists(session: string): KitError {
  return new KitError({
    code: "conflict",
    message: `The session "${session}" already exists.`,
    hint: "Name another session, or leave the name out.",
  });
}
