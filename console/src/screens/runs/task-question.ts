import type { RunRecord, WaitingSignal } from "../../../../src/client/index.ts";

/** kit's own workflows whose runs have a view of their own. */
export const specWorkflow = "kit.spec";
export const verifyWorkflow = "kit.verify";

/** A wait of a run of `kit.spec` for a person's decision about a task. */
export interface TaskQuestion {
  readonly task: string;
  /** The first characters of the judged tree: an answer counts for no other. */
  readonly tree: string;
}

/** Reads the name of a signal as `decisionSignal` of the protocol writes it. */
export function readQuestion(
  { workflow }: Pick<RunRecord, "workflow">,
  signal: string | undefined,
): TaskQuestion | undefined {
  const [, task, tree] = /^approve (.+) ([0-9a-f]{12})$/s.exec(signal ?? "") ?? [];
  return workflow === specWorkflow && task !== undefined && tree !== undefined ? { task, tree } : undefined;
}

/** The question of an item of the inbox in words; `undefined` for runs of other workflows. */
export function describeQuestion(item: WaitingSignal): string | undefined {
  const question = readQuestion(item, item.signal);
  if (question === undefined) return undefined;
  const feature = /"feature":("(?:[^"\\]|\\.)*")/.exec(item.payload_start ?? "")?.[1];
  return `Task ${question.task}${feature === undefined ? "" : ` of ${JSON.parse(feature)}`}`;
}
