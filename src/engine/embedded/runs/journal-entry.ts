/** What a run can ask its context for, as its journal knows it. */
export type EntryKind = "step" | "sleep" | "wait" | "now" | "uuid" | "dispatch";

/** What a journal holds of one position. */
export interface JournalEntry {
  /** From 1, in the order in which the run asked. */
  readonly position: number;
  readonly kind: EntryKind;
  /** Of a step or a signal; the agent of a dispatch; empty for the rest. */
  readonly name: string;
  readonly outcome: EntryOutcome;
}

/**
 * `pending` is a wait that has begun; the rest is recorded when it ends. `ended_as` counts the ends from
 * 1, in the order in which the run was told of them. `value` is as the blobs stored it; null is undefined.
 */
export type EntryOutcome = { readonly state: "pending"; readonly deadline: number | undefined } | EntryEnd;

export interface EntryEnd {
  readonly state: "done" | "failed";
  readonly ended_as: number;
  readonly value: string | null;
}
