import type { KitEvent } from "../../../src/protocol/event.ts";
import { answerTo } from "../service/model-server.ts";
import type { Received, Reply } from "./campaign-clients.ts";
import type { Effect, Wake } from "./campaign-project.ts";

/** How a promise was broken. */
export type Breach =
  /** Accepted work of which nothing is known. */
  | "lost"
  /** An effect that must happen once, or an index of an event, was given twice. */
  | "twice"
  | "out of order"
  /** Accepted work that has not ended. */
  | "stuck"
  /** Accepted work that failed, although its own code never fails. */
  | "dead"
  /** A client was told one thing, and another happened; or it was told nothing, and its call can be repeated. */
  | "told otherwise";

export interface Finding {
  readonly breach: Breach;
  readonly text: string;
}

/** The end of accepted work, as the server says it afterwards; `missing` if it knows none. */
export interface Ended {
  readonly status: string;
  readonly result?: unknown;
  readonly error?: unknown;
}

/** The record of a campaign. */
export interface Campaign {
  readonly replies: readonly Reply[];
  readonly effects: readonly Effect[];
  readonly wakes: readonly Wake[];
  readonly received: readonly Received[];
  /** By the ids of dispatches and runs. */
  readonly ended: ReadonlyMap<string, Ended>;
  /** The texts of the sessions' messages, by instance. */
  readonly histories: ReadonlyMap<string, readonly string[]>;
  /** The events of the instances that were read, as the server has them afterwards. */
  readonly logs: ReadonlyMap<string, readonly KitEvent[]>;
}

/** Checks what clients were told against what happened. Returns every broken promise. */
export function checkTold(campaign: Campaign): readonly Finding[] {
  return [
    ...checkEnds(campaign),
    ...checkEffects(campaign),
    ...checkDecisions(campaign),
    ...checkCancels(campaign),
    ...checkSignals(campaign),
    ...checkHistories(campaign),
    ...checkEvents(campaign),
    ...checkAnswers(campaign),
  ];
}

type ReplyOf<What extends Reply["what"]> = Extract<Reply, { readonly what: What }>;

function repliesOf<What extends Reply["what"]>({ replies }: Campaign, what: What): readonly ReplyOf<What>[] {
  return replies.filter((one): one is ReplyOf<What> => one.what === what);
}

function checkEnds(campaign: Campaign): readonly Finding[] {
  const cancelled = new Set(repliesOf(campaign, "cancel").map(({ id }) => id));
  const work = (["dispatch", "payment", "run"] as const).flatMap((what) => repliesOf(campaign, what));
  return work.flatMap(({ id, what, number }): readonly Finding[] => {
    const end = campaign.ended.get(id) ?? { status: "missing" };
    const name = `${what} #${number} ${id}`;
    if (cancelled.has(id)) return [];
    if (end.status === "missing") return [{ breach: "lost", text: name }];
    if (["queued", "running", "waiting"].includes(end.status))
      return [{ breach: "stuck", text: `${name}: ${JSON.stringify(end)}` }];
    if (end.status !== "completed") return [{ breach: "dead", text: `${name}: ${JSON.stringify(end)}` }];
    return [];
  });
}

/** How long an effect of aborted work may still begin after the answer to the one who cancelled it, or after a wake, in ms. */
const slackMs = 1_000;

/** Whether a process did this right after it woke: no check of a lease can be later than the last one before an effect. */
function isOfWake({ pid, at }: Effect, wakes: readonly Wake[]): boolean {
  return wakes.some((wake) => wake.pid === pid && at >= wake.at && at < wake.at + slackMs);
}

/** Calls that must not be repeated begin once; a call has one key, however often it begins. */
function checkEffects({ effects, wakes }: Campaign): readonly Finding[] {
  const findings: Finding[] = [];
  for (const [call, begun] of Map.groupBy(effects, ({ what, name }) => `${what} ${name}`)) {
    const once = call.startsWith("note ") || call.startsWith("pay ");
    if (once && begun.length > 1) findings.push({ breach: "twice", text: `${call}: ${begun.length} times` });
    const keys = new Set(begun.map(({ key }) => key));
    if (keys.size > 1) findings.push({ breach: "twice", text: `${call} has the keys ${[...keys].join()}` });
  }
  for (const before of effects.filter(({ name: step }) => step.endsWith(" before"))) {
    const { name, at } = before;
    const after = effects.find((one) => one.name === name.replace(/ before$/, " after"));
    if (after !== undefined && after.at < at && !isOfWake(before, wakes))
      findings.push({ breach: "out of order", text: `${name} began after "after"` });
  }
  return findings;
}

/** Every payment has at most one decision that was told, and what was told is what happened. */
function checkDecisions(campaign: Campaign): readonly Finding[] {
  const findings: Finding[] = [];
  for (const [instance, replies] of Map.groupBy(
    repliesOf(campaign, "decision"),
    ({ instance: name }) => name,
  )) {
    const answers = new Set(replies.map(({ approved }) => approved));
    const paid = campaign.effects.filter(
      ({ what, name }) => what === "pay" && name.startsWith(`${instance}#`),
    );
    const isUncertain = (campaign.histories.get(instance) ?? []).some((text) => text.includes("unknown"));
    if (answers.size > 1)
      findings.push({ breach: "told otherwise", text: `${instance} was approved and denied` });
    else if (answers.has(false) && paid.length > 0)
      findings.push({ breach: "told otherwise", text: `${instance} was denied, and paid` });
    else if (answers.has(true) && paid.length === 0 && !isUncertain)
      findings.push({
        breach: "told otherwise",
        text: `${instance} was approved, and not paid: ${campaign.histories.get(instance)?.join(" | ")}`,
      });
  }
  return findings;
}

function checkCancels(campaign: Campaign): readonly Finding[] {
  return repliesOf(campaign, "cancel").flatMap(({ id, line, number, at }): readonly Finding[] => {
    const status = campaign.ended.get(id)?.status;
    const late = campaign.effects.find(
      (one) => one.name === `${line}#${number}` && one.at > at + slackMs && !isOfWake(one, campaign.wakes),
    );
    if (late === undefined && status === "cancelled") return [];
    return [
      {
        breach: "told otherwise",
        text: `${line}#${number} was cancelled, and is ${status}, begun: ${late?.at}`,
      },
    ];
  });
}

/** A child that got its signal passes it on: its parent's result has it. */
function checkSignals(campaign: Campaign): readonly Finding[] {
  const sent = new Set(repliesOf(campaign, "signal").map(({ id }) => id));
  return repliesOf(campaign, "run").flatMap(({ id, number }): readonly Finding[] => {
    const end = campaign.ended.get(id);
    if (end?.status !== "completed") return [];
    const { got } = end.result as { readonly got: unknown };
    const isRight =
      number % 2 === 1
        ? got === number
        : sent.has((got as { readonly from?: string } | undefined)?.from ?? "");
    return isRight
      ? []
      : [{ breach: "told otherwise", text: `parent #${number} got ${JSON.stringify(got)}` }];
  });
}

/** Each accepted input is in its session once, in the order of the receipts, followed by its answer. */
function checkHistories(campaign: Campaign): readonly Finding[] {
  const inputs = [...repliesOf(campaign, "dispatch"), ...repliesOf(campaign, "prompt")];
  const findings: Finding[] = [];
  for (const [line, sent] of Map.groupBy(inputs, (one) => one.line)) {
    const texts = campaign.histories.get(line) ?? [];
    const word = line.startsWith("talk") ? "talk " : "";
    const found = texts.flatMap((text) => /^(?:talk )?#\d+$/.exec(text)?.[0] ?? []);
    const answers = texts.flatMap((text) => /Done with (.*)\.$/.exec(text)?.[1] ?? []);
    const cancelled = repliesOf(campaign, "cancel").find((one) => one.line === line);
    const expected = sent.map(({ number }) => `${word}#${number}`);
    const counts = (list: readonly string[]) => list.filter((one) => one !== `#${cancelled?.number}`);
    // A prompt whose call was refused is in the history too; the refusal is a finding of its own.
    const missing = expected.filter((input) => !counts(found).includes(input));
    const unanswered = expected.filter((input) => !counts(answers).includes(input));
    const numbers = counts(found).map((input) => Number(/\d+/.exec(input)?.[0]));
    if (missing.length > 0)
      findings.push({ breach: "lost", text: `${line}: ${missing.join()} in no history` });
    if (unanswered.length > 0)
      findings.push({ breach: "lost", text: `${line}: ${unanswered.join()} have no answer in the history` });
    if (new Set(numbers).size < numbers.length)
      findings.push({ breach: "twice", text: `${line}: the history has ${numbers.join()}` });
    if (numbers.some((number, index) => number < (numbers[index - 1] ?? 0)))
      findings.push({ breach: "out of order", text: `${line}: the history has ${numbers.join()}` });
  }
  return findings;
}

/** A reader gets each index once, rising, and sees what the log has. */
function checkEvents(campaign: Campaign): readonly Finding[] {
  return campaign.received.flatMap(({ instance, events }) => {
    const findings: Finding[] = [];
    const seen = new Map<number, KitEvent>();
    let last = 0;
    for (const event of events) {
      if (event.index <= last)
        findings.push({ breach: "twice", text: `${instance}: event ${event.index} came after ${last}` });
      last = Math.max(last, event.index);
      seen.set(event.index, event);
    }
    const log = new Map((campaign.logs.get(instance) ?? []).map((event) => [event.index, event]));
    for (const [index, event] of log) {
      // The log joins deltas that were sent one by one.
      if (index > last || event.type.endsWith("_delta")) continue;
      const received = seen.get(index);
      if (received === undefined)
        findings.push({
          breach: "lost",
          text: `${instance}: a reader missed event ${index} (${event.type})`,
        });
      else if (received.type !== event.type || received.operation_id !== event.operation_id)
        findings.push({
          breach: "twice",
          text: `${instance}: index ${index} is ${received.type} and ${event.type}`,
        });
    }
    return findings.slice(0, 5);
  });
}

/** A fault breaks this file, and the answer says so. */
const isBroken = "This workflow cannot be used: its file is broken.";

/** A call that can be repeated gets the answer, whatever happens meanwhile. */
function checkAnswers(campaign: Campaign): readonly Finding[] {
  const wrong = repliesOf(campaign, "prompt").filter(({ line, number, text }) => {
    const word = line.startsWith("talk") ? "talk " : "";
    return (
      !text.endsWith(answerTo(`${word}#${number}`)) || (word !== "" && text.split("word ").length !== 201)
    );
  });
  return [
    ...wrong.map(({ line, number, text }) => ({
      breach: "told otherwise" as const,
      text: `${line} #${number} was answered ${text.slice(-60)}`,
    })),
    ...repliesOf(campaign, "refused")
      .filter(({ message }) => !message.startsWith(isBroken))
      .map(({ call, code, message }) => ({
        breach: "told otherwise" as const,
        text: `${call}: ${code}: ${message}`,
      })),
  ];
}
