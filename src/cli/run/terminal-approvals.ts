import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { type Approvals, createApprovals } from "../../agents/approvals/approvals.ts";
import type { ApprovalDecision, ApprovalRequest } from "../../protocol/approval.ts";
import type { Output } from "../print/output.ts";
import { safeLine, toSafeJson } from "../text/safe-text.ts";

export interface ApprovalTerminal {
  /** Where the person types: a terminal, line by line. */
  readonly input: Readable;
  readonly output: Output;
  /** Takes keys out of what is shown. */
  readonly mask: (text: string) => string;
}

/** Asks the person at the terminal, one question after the other. */
export function createTerminalApprovals(terminal: ApprovalTerminal): Approvals {
  const waiting = createApprovals();
  let questions: Promise<void> = Promise.resolve();
  return {
    ...waiting,
    request(request, signal) {
      const word = waiting.request(request, signal);
      questions = questions.then(async () => {
        const decision = signal.aborted ? undefined : await ask(request, terminal, signal);
        // A late answer changes nothing: the call has been aborted or has expired.
        if (decision !== undefined)
          await waiting.decide(request.approval_id, decision).catch(() => undefined);
      });
      return word;
    },
  };
}

/** Undefined when the signal fires before there is an answer. */
function ask(
  { tool, args }: ApprovalRequest,
  { input, output, mask }: ApprovalTerminal,
  signal: AbortSignal,
): Promise<ApprovalDecision | undefined> {
  // All of the arguments, whatever their length: what is not shown cannot be approved.
  output.note(output.noteStyle("yellow", `${safeLine(tool)} wants to run with ${mask(toSafeJson(args))}`));
  output.note("Approve it? [y/N, or say why not]");
  // Lines come from the terminal's own editing, so that Ctrl-C stays a signal.
  const lines = createInterface({ input, terminal: false });
  return new Promise((resolve) => {
    const end = (decision: ApprovalDecision | undefined): void => {
      signal.removeEventListener("abort", leave);
      lines.off("close", closed);
      lines.close();
      resolve(decision);
    };
    const leave = (): void => end(undefined);
    const closed = (): void => end({ approved: false, reason: "No person answered." });
    signal.addEventListener("abort", leave, { once: true });
    lines.once("close", closed);
    lines.once("line", (line) => end(toDecision(line)));
  });
}

function toDecision(line: string): ApprovalDecision {
  const answer = line.trim();
  if (/^(y|yes)$/i.test(answer)) return { approved: true };
  return { approved: false, ...(answer === "" || /^(n|no)$/i.test(answer) ? {} : { reason: answer }) };
}
