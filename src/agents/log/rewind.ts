import { isoTime } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import type { ForkPlace } from "../../protocol/prompt.ts";
import { createBranch, type Rewind, rewindNote } from "../../protocol/rewind.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { Harness, Operation } from "../agent-runtime.ts";
import { isAnswer } from "../operations/answer.ts";
import { type ForkNote, forkOf } from "./fork.ts";
import { forkNote, reloadState } from "./session-state.ts";

/**
 * Lets the session go on before a message, which `target` names: by its operation, or by the client's id. One entry of the log says
 * so; an operation that resumes finds it. Throws `not_found` if the session has no such message.
 */
export async function rewind(
  { store, runtime }: Pick<Harness, "store" | "runtime">,
  { id, state, log }: Pick<Operation, "id" | "state" | "log">,
  target: string,
): Promise<void> {
  if (state.rewound?.by === id) return;
  const found = findMessage(await store.read(state.key), target);
  if (found === undefined) throw noMessage(target, "rewind_before");
  const value: Rewind = { ...found, by: id };
  const timestamp = isoTime(runtime.clock.now());
  await log.append([{ version: 1, type: "note", name: rewindNote, value, timestamp }]);
  await reloadState(store, state);
}

/**
 * Lets a new session begin with what another session of the instance had before one of its messages. A note says so; an operation
 * that resumes finds it. A session that has begun at this place, without an answer since, begins there again: its request was refused
 * or has failed. Throws `not_found` for an unknown message, `conflict` if the session has begun otherwise.
 */
export async function beginBefore(
  { store, runtime }: Pick<Harness, "store" | "runtime">,
  { id, state, log }: Pick<Operation, "id" | "state" | "log">,
  { session = "default", before }: ForkPlace,
): Promise<void> {
  const earlier = forkOf(state);
  if (earlier?.fork_id === id) return;
  const isAgain = earlier?.session === session && isUnanswered(await store.read(state.key), earlier);
  if (state.position > 0 && !isAgain) throw hasBegun(state.key.session);
  const entries = await store.read({ ...state.key, session });
  const found = findMessage(entries, before);
  if (found === undefined) throw noMessage(before, "fork.before");
  const { before: first, operation_id } = found;
  if (isAgain && first - 1 !== earlier.log_position) throw hasBegun(state.key.session);
  const value: ForkNote = { session, log_position: first - 1, operation_id, without: [], fork_id: id };
  const timestamp = isoTime(runtime.clock.now());
  const back: Rewind = { before: first, operation_id: earlier?.fork_id ?? id, by: id };
  await log.append([
    ...(isAgain
      ? [{ version: 1, type: "note", name: rewindNote, value: back, timestamp } as const]
      : entries.slice(0, first - 1)),
    { version: 1, type: "note", name: forkNote, value, timestamp },
  ]);
  // Rewinds of the other session hold here as well.
  await reloadState(store, state);
}

/** Whether a fork has nothing besides its copy but an operation without an answer. */
function isUnanswered(
  entries: readonly SessionEntry[],
  { log_position: copied, fork_id }: ForkNote,
): boolean {
  const isLeft = createBranch();
  for (let position = entries.length; position > copied; position -= 1) {
    const entry = entries[position - 1];
    if (isLeft(entry, position) || entry?.operation_id === undefined) continue;
    if (entry.operation_id !== fork_id || (entry.type === "message" && isAnswer(entry.message))) return false;
  }
  return true;
}

function hasBegun(session: string): KitError {
  return new KitError({
    code: "conflict",
    message: `The session "${session}" has begun, so it cannot begin as a fork.`,
    hint: "Name a new session; `rewind_before` goes on in the same one.",
  });
}

function noMessage(target: string, field: string): KitError {
  return new KitError({
    code: "not_found",
    message: `The session has no message "${target}" to go back to.`,
    hint: `\`${field}\` is the operation_id or the client_id of one of the user's messages.`,
  });
}

/** The first entry of the operation of a message. */
function findMessage(entries: readonly SessionEntry[], target: string): Omit<Rewind, "by"> | undefined {
  const isLeft = createBranch();
  let found: Omit<Rewind, "by"> | undefined;
  for (let position = entries.length; position > 0; position -= 1) {
    const entry = entries[position - 1];
    if (isLeft(entry, position) || entry?.operation_id === undefined) continue;
    const { operation_id } = entry;
    const isNamed = operation_id === target || (found === undefined && namesOf(entry).includes(target));
    if (isNamed || operation_id === found?.operation_id) found = { before: position, operation_id };
  }
  return found;
}

/** The ids of a message besides its operation's. A message that joined an operation is left behind together with it. */
function namesOf(entry: SessionEntry): readonly (string | undefined)[] {
  if (entry.type !== "message" || entry.message.role !== "user") return [];
  return [entry.message.client_id, entry.message.joined_from];
}
