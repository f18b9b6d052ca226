import { setImmediate } from "node:timers/promises";
import { isLeftOut } from "../../agents/log/left-out-rules.ts";
import { forkNote } from "../../agents/log/session-state.ts";
import type { ProjectRule } from "../../project/project.ts";
import type { GuidelineUsage, RuleUsage } from "../../protocol/guideline-usage.ts";
import type { AssistantMessage } from "../../protocol/message.ts";
import { createReceiptReader, isRule } from "../../protocol/read-records.ts";
import type { ReceiptItem } from "../../protocol/receipt.ts";
import type { SessionEntry, TouchedSession } from "../../protocol/session-entry.ts";
import type { SessionStore } from "../../stores/contract.ts";
import type { Retention } from "./retention.ts";

/** The sources of the usage of rules. */
export interface UsageSources {
  readonly sessions: Pick<Retention, "list">;
  readonly store: Pick<SessionStore, "read">;
  /** The rules of the project. */
  readonly rules: () => Promise<readonly ProjectRule[]>;
}

/** The turns that count. */
export interface UsageSelection {
  /** ms since 1970; default: 30 days ago. */
  readonly since?: number | undefined;
  readonly agent?: string | undefined;
  /** Returns those of a page of sessions that the caller may read. Default: all. */
  readonly permitted?: (sessions: readonly TouchedSession[]) => Promise<readonly TouchedSession[]>;
}

const defaultMs = 30 * 86_400_000;

/**
 * Adds up which rules the turns of sessions were shown. Reads one log after the other, so its time grows with the sessions that were
 * used since then, and its memory with the longest one.
 */
export async function readGuidelineUsage(
  { sessions, store, rules }: UsageSources,
  { since = Date.now() - defaultMs, agent, permitted }: UsageSelection,
): Promise<GuidelineUsage> {
  const sum = new UsageSum(await rules(), new Date(since).toISOString());
  let cursor: string | undefined;
  do {
    const page = await sessions.list({ limit: 200, cursor, since, ...(agent !== undefined && { agent }) });
    for (const session of (await permitted?.(page.sessions)) ?? page.sessions) {
      const { agent: name, instance_id, session: own } = session;
      sum.add(await store.read({ agent: name, instance_id, session: own }));
      // Requests run between two logs.
      await setImmediate();
    }
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  return sum.usage();
}

/** The sum of one rule. */
interface RuleSum {
  sessions: number;
  turns: number;
  tokens: number;
  cost: number | null;
  turnsLeftOut: number;
  lastShown: string | undefined;
  readonly file: string | undefined;
  readonly why: Map<string, number>;
  /** The last session and turn that counted. */
  session: number;
  turn: number;
}

/** Different reasons of one rule that are counted: there is one for each file that was touched. */
const maxReasons = 200;

class UsageSum {
  readonly #rules: readonly ProjectRule[];
  readonly #since: string;
  /** The rules of ids in receipts of older versions. */
  readonly #ofGuideline: ReadonlyMap<string, string>;
  readonly #sums = new Map<string, RuleSum>();
  #sessions = 0;
  #turns = 0;
  #input = 0;
  #unlisted = 0;

  constructor(rules: readonly ProjectRule[], since: string) {
    this.#rules = rules;
    this.#since = since;
    this.#ofGuideline = new Map(rules.map(({ id, guideline_id }) => [guideline_id, id]));
  }

  /** Adds the turns of a session's log. A fork begins with a copy of another log, which counts there. */
  add(entries: readonly SessionEntry[]): void {
    const read = createReceiptReader();
    const begun = entries.findLastIndex(
      ({ type, ...entry }) => type === "note" && "name" in entry && entry.name === forkNote,
    );
    const before = this.#turns;
    let items: readonly ReceiptItem[] = [];
    let omitted = 0;
    let leftOut: readonly string[] = [];
    for (const [index, entry] of entries.entries()) {
      if (entry.type !== "message") continue;
      if (entry.turn !== undefined) {
        const { turn_id, receipt } = entry.turn;
        items = read(turn_id, receipt).filter(isRule);
        omitted = receipt.omitted ?? 0;
        leftOut = receipt.left_out === undefined ? [] : this.#leftOutBy(new Set(receipt.left_out));
      }
      const { message } = entry;
      if (message.role !== "assistant" || index < begun || message.timestamp < this.#since) continue;
      if (this.#turns === before) this.#sessions += 1;
      this.#turns += 1;
      this.#input += message.usage.input;
      this.#unlisted += omitted;
      for (const item of items) this.#count(item, message);
      for (const rule of leftOut) this.#sumOf(rule).turnsLeftOut += 1;
    }
  }

  #leftOutBy(names: ReadonlySet<string>): readonly string[] {
    const ids = this.#rules.filter((rule) => isLeftOut(names, rule)).map(({ id }) => id);
    return [...new Set([...ids, ...[...names].map((name) => this.#ofGuideline.get(name) ?? name)])];
  }

  #count({ id, file, why, tokens }: ReceiptItem, { usage, timestamp }: AssistantMessage): void {
    const sum = this.#sumOf(this.#ofGuideline.get(id) ?? id, file);
    if (sum.session !== this.#sessions) sum.sessions += 1;
    sum.session = this.#sessions;
    // A rule can be in a prompt several times.
    if (sum.turn !== this.#turns) sum.turns += 1;
    sum.turn = this.#turns;
    sum.tokens += tokens;
    const { input, cache_read, cache_write } = usage.cost;
    if (sum.cost === null || input === null || cache_read === null || cache_write === null) sum.cost = null;
    else if (usage.input > 0)
      sum.cost += ((input + cache_read + cache_write) * Math.min(tokens, usage.input)) / usage.input;
    if (sum.lastShown === undefined || timestamp > sum.lastShown) sum.lastShown = timestamp;
    const known = sum.why.get(why);
    if (known !== undefined || sum.why.size < maxReasons) sum.why.set(why, (known ?? 0) + 1);
  }

  #sumOf(rule: string, file?: string): RuleSum {
    let sum = this.#sums.get(rule);
    if (sum === undefined) {
      const none = { sessions: 0, turns: 0, tokens: 0, cost: 0, turnsLeftOut: 0, session: 0, turn: 0 };
      sum = { ...none, lastShown: undefined, file, why: new Map() };
      this.#sums.set(rule, sum);
    }
    return sum;
  }

  usage(): GuidelineUsage {
    const ofProject = new Map(this.#rules.map((rule) => [rule.id, rule]));
    const files = new Set(this.#rules.map(({ file }) => file));
    const rules = [...new Set([...this.#sums.keys(), ...ofProject.keys()])].map((rule): RuleUsage => {
      const { sessions, turns, tokens, cost, lastShown, turnsLeftOut, file, why } = this.#sumOf(rule);
      const known = ofProject.get(rule);
      return {
        rule,
        file: known?.file ?? file,
        line: known?.line,
        title: known?.title,
        in_project: known !== undefined || files.has(rule),
        ...{ sessions, turns, tokens, cost },
        share: this.#input === 0 ? null : tokens / this.#input,
        last_shown: lastShown,
        why: [...why]
          .sort(([, one], [, other]) => other - one)
          .slice(0, 3)
          .map(([reason]) => reason),
        turns_left_out: turnsLeftOut,
      };
    });
    return {
      since: this.#since,
      sessions: this.#sessions,
      turns: this.#turns,
      input_tokens: this.#input,
      unlisted: this.#unlisted,
      rules: rules.sort((one, other) => other.tokens - one.tokens || (one.rule < other.rule ? -1 : 1)),
    };
  }
}
