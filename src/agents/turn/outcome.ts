import type { ToolOutput } from "../tool.ts";

/** What came of a call, before it is cut and masked for the model. */
export type Outcome = Exclude<ToolOutput, string> & {
  /** What the tool threw. */
  readonly thrown?: unknown;
};

export function failed(text: string): Outcome {
  return { content: text, isError: true };
}

const ended =
  "The process ended while this call was running: its outcome is unknown. Check what it did before you repeat it.";

/** Of a call that a process was about to run, or was running, when it ended. */
export const unknownOutcome: Outcome & { readonly content: string } = {
  content: ended,
  isError: true,
  outcome: "unknown",
};
