import type { LanguageModelV4Message } from "@ai-sdk/provider";
import { textTokens } from "../../base/text-tokens.ts";
import type { FilePart, Message } from "../../protocol/message.ts";
import type { ReceiptItem, TurnRecord } from "../../protocol/receipt.ts";
import type { SessionEntry, SessionKey } from "../../protocol/session-entry.ts";
import type { MaybePromise, SessionStore } from "../../stores/contract.ts";
import { toPromptMessage } from "./to-prompt.ts";

/**
 * A session in memory: the fold over its log, and the position up to which it is folded.
 *
 * `messages` and `prompt` only ever grow at the end, except at a compaction, so that a turn costs the
 * same however long the session is.
 */
export interface SessionState {
  readonly key: SessionKey;
  readonly parent: SessionKey | undefined;
  position: number;
  messages: Message[];
  /** The log position of each message, for compaction. */
  positions: number[];
  /** What `promptOf` has made of `messages` so far, behind a system message. */
  prompt: LanguageModelV4Message[];
  /** How many of `messages` are in `prompt`, or have nothing that a provider would take. */
  prompted: number;
  /** Documents and recordings among `messages`; not every model reads them. */
  files: FilePart[];
  /** What kit remembers beside the messages, until a compaction takes away what it is about. */
  notes: readonly SessionNote[];
  /** Tokens of the active context: the provider's count where known, an estimate for the rest. */
  tokens: number;
  /** What the messages show of rules, specs and the like; another list whenever that changes. */
  shown: readonly ReceiptItem[];
  /** What the log has told last of a turn's prompt. */
  turn: LoggedTurn | undefined;
  /** The turns at which the log has told a list of a receipt. */
  listed: ToldLists | undefined;
  /** Where the log has the newest compaction; 0 for none. */
  compactedAt: number;
  /** Where the log has the first entry of each operation before the last one. See `begunAt`. */
  operations: Map<string, number> | undefined;
  /** The operation of the newest entry that says whose it is. */
  lastOperation: string | undefined;
  /** Where the log has its first entry. */
  lastBegun: number;
  /** Another writer was ahead: the state must be loaded again before the next operation. */
  stale: boolean;
}

/** Digests of a turn's prompt; see `TurnRecord`. */
export interface LoggedTurn {
  readonly prefix: string;
  readonly receipt: string;
  readonly parts: Readonly<Record<string, string>>;
  /** `compactedAt` as it was then. */
  readonly compactedAt: number;
}

/** The note of what a system prompt goes on to say of a place that has changed since. */
export const keptPlaceNote = "kept_place";

export interface SessionNote {
  readonly name: string;
  readonly value: unknown;
  readonly position: number;
}

const noFiles: FilePart[] = [];

const noSystem: LanguageModelV4Message = { role: "system", content: "" };

const nothingShown: readonly ReceiptItem[] = [];

function emptyState(key: SessionKey, parent?: SessionKey): SessionState {
  return {
    key,
    parent,
    position: 0,
    messages: [],
    positions: [],
    prompt: [noSystem],
    prompted: 0,
    files: [],
    notes: [],
    tokens: 0,
    shown: nothingShown,
    turn: undefined,
    listed: undefined,
    compactedAt: 0,
    operations: undefined,
    lastOperation: undefined,
    lastBegun: 0,
    stale: false,
  };
}

/** Loads a session: one read of its rows, one pass over them. Waits only where the store does. */
export function loadState(
  store: SessionStore,
  key: SessionKey,
  parent?: SessionKey,
): MaybePromise<SessionState> {
  const entries = store.read(key);
  const state = emptyState(key, parent);
  return entries instanceof Promise ? entries.then((read) => fold(state, read)) : fold(state, entries);
}

function fold(state: SessionState, entries: readonly SessionEntry[]): SessionState {
  // Only what stands behind the last compaction is active, so nothing before it is converted.
  let from = 0;
  for (let index = entries.length - 1; index >= 0 && from === 0; index -= 1) {
    const entry = entries[index];
    if (entry?.type === "compaction") from = Math.min(entry.keep_from - 1, index);
  }
  entries.forEach((entry, index) => {
    if (index < from && entry.type === "message") {
      state.position += 1;
      noteOperation(state, entry.operation_id);
      if (entry.turn !== undefined) noteTurn(state, entry.turn);
    } else applyEntry(state, entry);
  });
  return state;
}

/**
 * The history as a model takes it, behind the system message. Only what came since it was last asked for
 * is made, always in the same array; who only reads a session never pays for it.
 */
export function promptOf(state: SessionState, system: string): LanguageModelV4Message[] {
  const { messages, prompt } = state;
  if (prompt[0]?.content !== system) prompt[0] = { role: "system", content: system };
  for (let index = state.prompted; index < messages.length; index += 1) {
    const message = messages[index];
    const made = message === undefined ? undefined : toPromptMessage(message);
    // A model may answer nothing at all, and providers refuse to read that again.
    if (made !== undefined && made.content.length > 0) prompt.push(made);
  }
  state.prompted = messages.length;
  return prompt;
}

/** Reads the log again into the same state: another writer has gone on. */
export async function reloadState(store: SessionStore, state: SessionState): Promise<void> {
  Object.assign(state, await loadState(store, state.key, state.parent));
}

/** Takes in what another process has added since. The state is the caller's alone meanwhile. */
export async function catchUp(store: SessionStore, state: SessionState): Promise<void> {
  takeIn(state, await store.read(state.key, state.position));
}

/** Takes in the next entries of the log: all of them, so that the state is no longer stale. */
export function takeIn(state: SessionState, entries: readonly SessionEntry[]): void {
  applyEntries(state, entries);
  state.stale = false;
}

export function applyEntries(state: SessionState, entries: readonly SessionEntry[]): void {
  for (const entry of entries) applyEntry(state, entry);
}

/**
 * Appends to the log in one transaction, then to the state. Waits only where the store does. `input`: the id of
 * what the entries bring in, which the log takes once.
 */
export function commit(
  { store, state }: { readonly store: SessionStore; readonly state: SessionState },
  entries: readonly SessionEntry[],
  input?: string,
): MaybePromise<void> {
  let written: MaybePromise<void>;
  try {
    written = store.append({
      key: state.key,
      expected: state.position,
      entries,
      ...(input === undefined ? undefined : { input }),
      ...(state.parent === undefined ? undefined : { parent: state.parent }),
    });
  } catch (error) {
    state.stale = true;
    throw error;
  }
  const apply = (): void => applyEntries(state, entries);
  if (!(written instanceof Promise)) return apply();
  return written.then(apply, (error: unknown) => {
    state.stale = true;
    throw error;
  });
}

function applyEntry(state: SessionState, entry: SessionEntry): void {
  state.position += 1;
  noteOperation(state, entry.operation_id);
  switch (entry.type) {
    case "message": {
      const { message } = entry;
      state.messages.push(message);
      if (message.role === "user") state.files.push(...filesOf(message));
      state.positions.push(state.position);
      const shows = shownIn(message);
      if (shows.length > 0) state.shown = [...state.shown, ...shows];
      if (entry.turn !== undefined) noteTurn(state, entry.turn);
      // A provider's count covers the whole prompt and its answer; everything since is estimated.
      if (message.role === "assistant" && message.usage.total_tokens > 0) {
        state.tokens = message.usage.input + message.usage.output;
      } else state.tokens += estimateTokens(message);
      return;
    }
    case "compaction":
      applyCompaction(state, entry);
      return;
    case "note":
      if (entry.operation_id !== undefined) return;
      state.notes = [...state.notes, { name: entry.name, value: entry.value, position: state.position }];
      return;
  }
}

function shownIn(message: Message): readonly ReceiptItem[] {
  if (message.role === "user") return message.shows ?? nothingShown;
  if (message.role === "assistant" || message.content.every(({ shows }) => shows === undefined))
    return nothingShown;
  return message.content.flatMap(({ shows = nothingShown }) => shows);
}

function noteTurn(state: SessionState, { turn_id, prefix, parts, receipt }: TurnRecord): void {
  state.turn = {
    prefix: prefix.digest,
    receipt: receipt.digest,
    parts,
    compactedAt: state.compactedAt,
  };
  state.listed = remembered(state.listed ?? [], receipt.digest, turn_id);
}

function filesOf({ content }: Message): FilePart[] {
  return content.length === 1 ? noFiles : content.filter((part) => part.type === "file");
}

function noteOperation(state: SessionState, id: string | undefined): void {
  if (id === undefined || id === state.lastOperation) return;
  if (state.lastOperation !== undefined) {
    state.operations ??= new Map();
    state.operations.set(state.lastOperation, state.lastBegun);
  }
  state.lastOperation = id;
  state.lastBegun = state.operations?.get(id) ?? state.position;
}

/** Where the log has the first entry of an operation: what is asked again is known by its id. */
export function begunAt(
  { lastOperation, lastBegun, operations }: SessionState,
  id: string,
): number | undefined {
  return id === lastOperation ? lastBegun : operations?.get(id);
}

function applyCompaction(state: SessionState, entry: Extract<SessionEntry, { type: "compaction" }>): void {
  const first = state.positions.findIndex((position) => position >= entry.keep_from);
  const kept = first === -1 ? state.messages.length : first;
  const summary: Message = {
    role: "user",
    content: [{ type: "text", text: entry.summary }],
    timestamp: entry.timestamp,
    source: "summary",
    shows: [
      {
        kind: "memory",
        id: "summary",
        why: "the conversation was shortened",
        tokens: textTokens(entry.summary),
      },
    ],
  };
  state.messages = [summary, ...state.messages.slice(kept)];
  // The summary stands before every entry, so that the next compaction drops it.
  state.positions = [0, ...state.positions.slice(kept)];
  state.prompt = [noSystem];
  state.prompted = 0;
  state.files = state.messages.flatMap(filesOf);
  state.tokens = entry.tokens_after;
  state.shown = state.messages.flatMap(shownIn);
  state.compactedAt = state.position;
  // The model no longer sees what was shown before the cut, and its system prompt is made anew.
  state.notes = state.notes.filter((note) => note.position >= entry.keep_from && note.name !== keptPlaceNote);
}

/** Lists of receipts that a later turn may refer to, with the turn that has told each: the oldest first. */
export type ToldLists = readonly { readonly digest: string; readonly turnId: string }[];

export const nothingTold: ToldLists = [];

const maxLists = 32;

/** Keeps the turn that has first told a list; of many lists the oldest are told again. */
export function remembered(lists: ToldLists, digest: string, turnId: string): ToldLists {
  if (digest === "" || turnOf(lists, digest) !== undefined) return lists;
  const kept = lists.length < maxLists ? lists : lists.slice(1);
  return [...kept, { digest, turnId }];
}

/** The turn that has told the list of that digest. */
export function turnOf(lists: ToldLists, digest: string): string | undefined {
  for (const list of lists) if (list.digest === digest) return list.turnId;
  return undefined;
}

/** About what an image costs with the hosted models, whatever its size. */
const tokensPerImage = 1_200;

/** Bytes of a document or a recording for each token: about right for a PDF of text, and too many for audio. */
const fileBytesPerToken = 30;

/**
 * A rough count of a message's tokens: a quarter of its characters, a whole token for each character
 * of scripts that are not written with an alphabet. Providers' own counts win where they are known.
 */
export function estimateTokens(message: Message): number {
  let tokens = 4;
  for (const part of message.content) {
    switch (part.type) {
      case "text":
      case "reasoning":
        tokens += textTokens(part.text);
        break;
      case "image":
        tokens += tokensPerImage;
        break;
      case "file":
        // Base64 has four characters for three bytes; nobody knows the size behind an address.
        tokens += part.data.startsWith("https:")
          ? tokensPerImage
          : Math.ceil((part.data.length * 0.75) / fileBytesPerToken);
        break;
      case "tool_call":
        tokens += textTokens(part.tool) + textTokens(JSON.stringify(part.args) ?? "");
        break;
      case "tool_result":
        for (const item of part.content)
          tokens += item.type === "text" ? textTokens(item.text) : tokensPerImage;
        break;
    }
  }
  return tokens;
}
