import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { type Approvals, createApprovals } from "../../agents/approvals/approvals.ts";
import { stateFolder } from "../../app/state-folder.ts";
import { attempt } from "../../base/attempt.ts";
import { KitError } from "../../base/kit-error.ts";
import { makeFolderSync } from "../../files/replace-file.ts";
import { isAlive } from "../../processes/is-alive.ts";
import type { ApprovalDecision, ApprovalRequest } from "../../protocol/approval.ts";
import type { Output } from "../print/output.ts";
import { printWaitingCall, type ReadProjectFile } from "../print/print-call.ts";
import { toAnswer } from "./answer-text.ts";

export interface ApprovalTerminal {
  /** The terminal that the person types at, line by line. */
  readonly input: Readable;
  readonly output: Output;
  /** Masks keys in the printed text. */
  readonly mask: (text: string) => string;
  readonly readFile: ReadProjectFile;
}

/** Asks the person at the terminal, one question at a time. */
export function createTerminalApprovals(terminal: ApprovalTerminal): Approvals {
  const waiting = createApprovals();
  let questions: Promise<void> = Promise.resolve();
  return {
    ...waiting,
    request(request, signal, wait) {
      const decision = waiting.request(request, signal, wait);
      questions = questions.then(async () => {
        if (!signal.aborted) await printWaitingCall(request, terminal);
        const isQuestion = request.kind === "question";
        const question = isQuestion
          ? "Your answer? [JSON, or a text; empty to decline]"
          : "Approve it? [y/N, or say why not]";
        const read = isQuestion ? (line: string) => toReply(line, request.schema) : toDecision;
        const decision = signal.aborted
          ? undefined
          : await askPerson({ ...terminal, question, read }, signal);
        // A late answer is ignored: the call was aborted or has expired.
        if (decision !== undefined)
          await waiting.decide(request.approval_id, decision).catch(() => undefined);
      });
      return decision;
    },
  };
}

/** Asks a question with a yes, a no or a reason as its answer. Returns undefined if the signal fires before there is one. */
export function askPerson(
  {
    input,
    output,
    question,
    read = toDecision,
  }: Pick<ApprovalTerminal, "input" | "output"> & {
    readonly question: string;
    /** Reads the typed line; default: a yes, a no, or the reason of a no. */
    readonly read?: (line: string) => ApprovalDecision;
  },
  signal: AbortSignal,
): Promise<ApprovalDecision | undefined> {
  output.note(question);
  // The terminal's own line editing, so that Ctrl-C stays a signal.
  const lines = createInterface({ input, terminal: false });
  return new Promise((resolve) => {
    const end = (decision: ApprovalDecision | undefined): void => {
      signal.removeEventListener("abort", leave);
      lines.off("close", closed);
      lines.close();
      resolve(decision);
    };
    const leave = (): void => end(undefined);
    const closed = (): void => {
      output.note("Denied: no person answered.");
      end({ approved: false, reason: "No person answered." });
    };
    signal.addEventListener("abort", leave, { once: true });
    lines.once("close", closed);
    lines.once("line", (line) => {
      const decision = read(line);
      if (decision.result === undefined) output.note(decision.approved ? "Approved." : "Denied.");
      end(decision);
    });
  });
}

function toDecision(line: string): ApprovalDecision {
  const answer = line.trim();
  if (/^(y|yes)$/i.test(answer)) return { approved: true };
  return { approved: false, ...(answer === "" || /^(n|no)$/i.test(answer) ? {} : { reason: answer }) };
}

/** The answer to a question; an empty line declines it. */
function toReply(line: string, schema: ApprovalRequest["schema"]): ApprovalDecision {
  const text = line.trim();
  return text === "" ? { approved: false } : { approved: true, result: toAnswer(text, schema) };
}

/** Below the state folder: the engine of each `kit run` that runs a workflow, named after its process. */
const folderName = "terminals";

/**
 * Makes the folder for this process's engine, so that 'kit runs signal' reaches the run from another terminal, and
 * removes those that killed processes have left. The folder is removed on disposal.
 */
function makeTerminalFolder(root: string): Disposable & { readonly path: string } {
  const folder = join(stateFolder(root), folderName);
  for (const pid of pidsIn(folder)) {
    if (!isAlive(pid)) rmSync(join(folder, String(pid)), { recursive: true, force: true });
  }
  const path = join(folder, String(process.pid));
  makeFolderSync(path);
  return {
    path,
    [Symbol.dispose]() {
      rmSync(path, { recursive: true, force: true });
    },
  };
}

/**
 * The folder of this process; undefined where kit must not store anything, as with KIT_STORE=memory: then no command
 * can signal the run.
 */
export function openTerminalFolder(root: string): ReturnType<typeof makeTerminalFolder> | undefined {
  try {
    return makeTerminalFolder(root);
  } catch (error) {
    if (error instanceof KitError && error.code === "unavailable") return undefined;
    throw error;
  }
}

/** The engine folders of the `kit run` processes that run a workflow of this project now. */
export function terminalFolders(root: string): readonly string[] {
  const folder = join(root, ".kit", folderName);
  return pidsIn(folder)
    .filter((pid) => pid !== process.pid && isAlive(pid))
    .map((pid) => join(folder, String(pid)));
}

function pidsIn(folder: string): readonly number[] {
  // No workflow was ever run here.
  return attempt(
    () =>
      readdirSync(folder)
        .map(Number)
        .filter((pid) => Number.isInteger(pid) && pid > 0),
    [],
  );
}
