/** What stands before a model of a project's knowledge. */
export const receiptKinds = ["instructions", "role", "guideline", "skill", "spec", "memory"] as const;
export type ReceiptKind = (typeof receiptKinds)[number];

/** Something that stands in a prompt: what it is and why it is there, without its text. */
export interface ReceiptItem {
  readonly kind: ReceiptKind;
  /** Of a guideline or spec its id, of a skill, role or agent its name, of project instructions their path. */
  readonly id: string;
  /** Relative to the root of the repository; absent for what comes from no file. */
  readonly file?: string;
  /** From 1. */
  readonly line?: number;
  /** In words: "instructions of the project", "applies to src/app.ts", "found by spec_search". */
  readonly why: string;
  /** About how many tokens it takes. */
  readonly tokens: number;
}

/**
 * What was in front of the model in a turn. Lists are long and stay the same: one is told as what has come since the
 * turn `before`, whose whole list it begins with. Without `before`, `added` is the whole list.
 */
export interface TurnReceipt {
  /** Names the whole list: the same items in the same order have the same digest. */
  readonly digest: string;
  /** How many items the whole list has, and about how many tokens they take. */
  readonly items: number;
  readonly tokens: number;
  /** A `turn_id` of the same session. */
  readonly before?: string;
  /** Absent where nothing has come since. */
  readonly added?: readonly ReceiptItem[];
  /** How many items of `added` are left out, beyond 200. */
  readonly omitted?: number;
}

/**
 * Of what a prompt consists before its history. A provider's cache serves a turn that has the same digest as the one
 * before it.
 */
export interface PromptPrefix {
  readonly digest: string;
  /**
   * What is other than in the turn before, so that its cache is of no use: `model`, `settings`, `tools`, a section
   * of the system prompt (`instructions`, `project_instructions`, `working_folder`, `specs`, `commands`, `skills`,
   * `agents`, `role`, `secrets`), or `compaction`.
   */
  readonly changed?: readonly string[];
}

/** What the log of a session keeps of a turn whose prompt begins otherwise, or shows more, than that of the turn before. */
export interface TurnRecord {
  readonly turn_id: string;
  readonly prefix: PromptPrefix;
  /** A digest of each part that `changed` can name. */
  readonly parts: Readonly<Record<string, string>>;
  readonly receipt: TurnReceipt;
}

/** Reads whole lists from the receipts of a session's turns, in their order; see `TurnReceipt`. */
export function createReceiptReader(): (turnId: string, receipt: TurnReceipt) => readonly ReceiptItem[] {
  const lists = new Map<string, readonly ReceiptItem[]>();
  return (turnId, { before, added = [] }) => {
    const begun = before === undefined ? [] : (lists.get(before) ?? []);
    const list = added.length === 0 ? begun : [...begun, ...added];
    lists.set(turnId, list);
    return list;
  };
}
