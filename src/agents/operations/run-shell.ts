import { isoTime } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { ExecResult } from "../../sandboxes/contract.ts";
import type { Harness, Operation } from "../agent-runtime.ts";
import { secretsFor } from "../secrets.ts";
import { cutText } from "../turn/cut-parts.ts";
import type { ShellOptions } from "./options.ts";
import { grant } from "./prepare.ts";

/** Notes of commands whose operation has a caller's id: before the command runs, and its result. */
const begunNote = "shell_begun";
const endedNote = "shell_ended";

/** Runs a command under the agent's policy, and notes it in the history for the model to see. */
export async function runShell(
  harness: Pick<Harness, "runtime">,
  operation: Operation,
  { command, options }: { readonly command: string; readonly options: ShellOptions },
): Promise<ExecResult> {
  const endNote = noteOf(operation, endedNote);
  if (endNote !== undefined) return endNote as ExecResult;
  if (noteOf(operation, begunNote) === true) return await outcomeUnknown(harness, operation);
  grant(operation, secretsFor(harness.runtime.env, options.secrets ?? []));
  const sandbox = await operation.live.sandbox();
  const { runCommand } = await import("../tools/run-command.ts");
  const hasOwnId = options.operationId !== undefined;
  if (hasOwnId) await operation.log.commit([toNote(harness, operation, { name: begunNote, value: true })]);
  const raw = await runCommand({
    command,
    sandbox,
    policy: operation.live.profile,
    projectRoot: harness.runtime.projectRoot,
    env: operation.secrets,
    signal: operation.signal,
    emit: operation.emit,
    cwd: options.cwd,
    timeoutMs: options.timeoutMs,
  }).catch(async (error: unknown) => {
    // A refused command never started, so the caller may repeat it.
    if (hasOwnId && !operation.signal.aborted)
      await operation.log.commit([toNote(harness, operation, { name: begunNote, value: false })]);
    throw error;
  });
  const { mask = unmasked } = operation;
  const result = { ...raw, stdout: mask(raw.stdout), stderr: mask(raw.stderr) };
  const output = cutText(result.stdout + result.stderr);
  const text = `The user ran \`${mask(command)}\` (exit code ${result.exit_code ?? "none"}):\n\n${output}`;
  const entries = [
    toMessage(harness, operation, text),
    ...(hasOwnId ? [toNote(harness, operation, { name: endedNote, value: result })] : []),
  ];
  await operation.log.append(entries, false, true);
  // The history keeps the output of an aborted command; the caller gets the usual abort.
  operation.signal.throwIfAborted();
  return result;
}

const unmasked = (text: string): string => text;

/** Reports to model (once) and caller that the process ended while the command ran. */
async function outcomeUnknown(harness: Pick<Harness, "runtime">, operation: Operation): Promise<never> {
  if (operation.past?.messages.length === 0) {
    const text = "A command that the user ran was cut off: its outcome is unknown.";
    await operation.log.append([toMessage(harness, operation, text)]);
  }
  throw new KitError({
    code: "conflict",
    message: "The process ended while the command ran: its outcome is unknown.",
    hint: "Check what it did, then run it under another operation id.",
  });
}

function noteOf({ past }: Operation, name: string): unknown {
  return past?.notes.findLast((note) => note.name === name)?.value;
}

function toNote(
  harness: Pick<Harness, "runtime">,
  operation: Operation,
  note: { readonly name: string; readonly value: unknown },
): SessionEntry {
  const timestamp = isoTime(harness.runtime.clock.now());
  return { version: 1, type: "note", ...note, timestamp, operation_id: operation.id };
}

function toMessage(harness: Pick<Harness, "runtime">, operation: Operation, text: string): SessionEntry {
  const timestamp = isoTime(harness.runtime.clock.now());
  const message = { role: "user", content: [{ type: "text", text }], timestamp } as const;
  return { version: 1, type: "message", message, operation_id: operation.id };
}
