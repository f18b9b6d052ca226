import type { LanguageModelV4Message } from "@ai-sdk/provider";
import { textTokens } from "../../base/text-size.ts";
import type { FilePart, Message } from "../../protocol/message.ts";
import type { ReceiptItem, TurnRecord } from "../../protocol/receipt.ts";
import { createBranch, type Rewind, readRewind } from "../../protocol/rewind.ts";
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
  /** The provider messages that `promptOf` has made of `messages` so far, after a system message. */
  prompt: LanguageModelV4Message[];
  /** How many of `messages` `promptOf` has converted. */
  prompted: number;
  /** Documents and recordings in `messages`; not every model reads them. */
  files: FilePart[];
  /** Notes of kit besides the messages, until a compaction removes the messages they belong to. */
  notes: readonly SessionNote[];
  /** Tokens of the active context: the provider's count where known, an estimate for the rest. */
  tokens: number;
  /** Rules, specs and other items that the messages show; a new array on each change. */
  receiptItems: readonly ReceiptItem[];
  /** The newest logged record of a turn's prompt. */
  turn: LoggedTurn | undefined;
  /** The receipts that the log has listed in full. */
  listed: ListedReceipts | undefined;
  /** Log position of the newest compaction; 0 for none. */
  compactedAt: number;
  /** Log position of the first entry of each operation before the last one. See `begunAt`. */
  operations: Map<string, number> | undefined;
  /** The operation of the newest entry that names one. */
  lastOperation: string | undefined;
  /** Log position of its first entry. */
  lastBegun: number;
  /** The newest rewind. */
  rewound: Rewind | undefined;
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

/** The note with the working place that the system prompt still describes after a change. */
export const keptPlaceNote = "kept_place";

/** The note with the origin of a session that is a fork; see `forkEntries`. */
export const forkNote = "fork";

/** The note with the rules that a session has begun without; see `rulesLeftOut` in `left-out-rules.ts`. */
export const leftOutNote = "rules_left_out";

/** Notes about the whole session, which no compaction removes. */
const lastingNotes: readonly string[] = [forkNote, leftOutNote];

export interface SessionNote {
  readonly name: string;
  readonly value: unknown;
  readonly position: number;
}

/** Whether an entry that was left behind still holds for the session. */
function isLasting(entry: SessionEntry): boolean {
  return entry.type === "note" && entry.operation_id === undefined && lastingNotes.includes(entry.name);
}

const noFiles: FilePart[] = [];

const noSystem: LanguageModelV4Message = { role: "system", content: "" };

const noReceiptItems: readonly ReceiptItem[] = [];

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
    receiptItems: noReceiptItems,
    turn: undefined,
    listed: undefined,
    compactedAt: 0,
    operations: undefined,
    lastOperation: undefined,
    lastBegun: 0,
    rewound: undefined,
    stale: false,
  };
}

/** Loads a session: one read of its rows, one pass over them. Synchronous if the store is. */
export function loadState(
  store: SessionStore,
  key: SessionKey,
  parent?: SessionKey,
): MaybePromise<SessionState> {
  const state = emptyState(key, parent);
  const entries = store.read(key);
  return entries instanceof Promise ? foldWhenRead(state, entries) : fold(state, entries);
}

function foldWhenRead(state: SessionState, entries: Promise<readonly SessionEntry[]>): Promise<SessionState> {
  return entries.then((read) => fold(state, read));
}

/** The state that a session's entries make, from the first on. */
export function stateOf(key: SessionKey, entries: readonly SessionEntry[]): SessionState {
  return fold(emptyState(key), entries);
}

function fold(state: SessionState, entries: readonly SessionEntry[]): SessionState {
  if (entries.length === 0) return state;
  // Only entries after the last compaction are active, so earlier ones are not converted.
  let from = 0;
  const left = new Set<number>();
  const isLeft = createBranch();
  for (let index = entries.length - 1; index >= 0; index -= 1) {
    const entry = entries[index];
    if (isLeft(entry, index + 1)) left.add(index);
    else if (from === 0 && entry?.type === "compaction") from = Math.min(entry.keep_from - 1, index);
  }
  for (const [index, entry] of entries.entries()) {
    const isSkipped = left.has(index) ? !isLasting(entry) : index < from && entry.type === "message";
    if (isSkipped) {
      state.position += 1;
      noteOperation(state, entry.operation_id);
      if (entry.type === "message" && entry.turn !== undefined) noteTurn(state, entry.turn);
    } else applyEntry(state, entry);
  }
  return state;
}

/**
 * The history in the provider's form, after the system message. Converts only messages that are new since the last
 * call, into the same array; callers that only read a session never pay for it.
 */
export function promptOf(state: SessionState, system: string): LanguageModelV4Message[] {
  const { messages, prompt } = state;
  if (prompt[0]?.content !== system) prompt[0] = { role: "system", content: system };
  for (let index = state.prompted; index < messages.length; index += 1) {
    const message = messages[index];
    const promptMessage = message === undefined ? undefined : toPromptMessage(message);
    // A model may answer nothing, and providers refuse an empty message.
    if (promptMessage !== undefined && promptMessage.content.length > 0) prompt.push(promptMessage);
  }
  state.prompted = messages.length;
  return prompt;
}

/** Reads the log again into the same state, after another writer has appended. */
export async function reloadState(store: SessionStore, state: SessionState): Promise<void> {
  Object.assign(state, await loadState(store, state.key, state.parent));
}

/** Applies entries that another process has added. The caller must own the state meanwhile. */
export async function catchUp(store: SessionStore, state: SessionState): Promise<void> {
  applyNew(state, await store.read(state.key, state.position));
  if (state.stale) await reloadState(store, state);
}

/** Applies all new entries of the log, so that the state is no longer stale, unless another writer has rewound the session. */
export function applyNew(state: SessionState, entries: readonly SessionEntry[]): void {
  applyEntries(state, entries);
  state.stale = entries.some((entry) => readRewind(entry) !== undefined);
}

export function applyEntries(state: SessionState, entries: readonly SessionEntry[]): void {
  for (const entry of entries) applyEntry(state, entry);
}

/**
 * Appends to the log in one transaction, then to the state. Synchronous if the store is. `input` is the id of
 * the entries' input, which the log accepts once.
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
      input,
      parent: state.parent,
    });
  } catch (error) {
    state.stale = true;
    throw error;
  }
  return written instanceof Promise
    ? applyWhenWritten(written, state, entries)
    : applyEntries(state, entries);
}

/** A function of its own: closures would have `commit` keep its variables in the heap, also where the store is synchronous. */
function applyWhenWritten(
  written: Promise<void>,
  state: SessionState,
  entries: readonly SessionEntry[],
): Promise<void> {
  return written.then(
    () => applyEntries(state, entries),
    (error: unknown) => {
      state.stale = true;
      throw error;
    },
  );
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
      const shows = receiptItemsOf(message);
      if (shows.length > 0) state.receiptItems = [...state.receiptItems, ...shows];
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
      state.rewound = readRewind(entry) ?? state.rewound;
      state.notes = [...state.notes, { name: entry.name, value: entry.value, position: state.position }];
      return;
  }
}

function receiptItemsOf(message: Message): readonly ReceiptItem[] {
  if (message.role === "user") return message.shows ?? noReceiptItems;
  if (message.role === "assistant" || message.content.every(({ shows }) => shows === undefined))
    return noReceiptItems;
  return message.content.flatMap(({ shows = noReceiptItems }) => shows);
}

function noteTurn(state: SessionState, { turn_id, prefix, parts, receipt }: TurnRecord): void {
  state.turn = {
    prefix: prefix.digest,
    receipt: receipt.digest,
    parts,
    compactedAt: state.compactedAt,
  };
  state.listed = rememberReceipt(state.listed ?? [], receipt.digest, turn_id);
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

/** Log position of an operation's first entry; undefined for an unknown id. */
export function begunAt(
  { lastOperation, lastBegun, operations }: SessionState,
  id: string,
): number | undefined {
  return id === lastOperation ? lastBegun : operations?.get(id);
}

function applyCompaction(state: SessionState, entry: Extract<SessionEntry, { type: "compaction" }>): void {
  const first = state.positions.findIndex((position) => position >= entry.keep_from);
  const keepFrom = first === -1 ? state.messages.length : first;
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
  state.messages = [summary, ...state.messages.slice(keepFrom)];
  // Position 0 is before every entry, so that the next compaction drops the summary.
  state.positions = [0, ...state.positions.slice(keepFrom)];
  state.prompt = [noSystem];
  state.prompted = 0;
  state.files = state.messages.flatMap(filesOf);
  state.tokens = entry.tokens_after;
  state.receiptItems = state.messages.flatMap(receiptItemsOf);
  state.compactedAt = state.position;
  // The model no longer sees items before the cut, and its system prompt is built again.
  state.notes = state.notes.filter(
    ({ name, position }) =>
      lastingNotes.includes(name) || (position >= entry.keep_from && name !== keptPlaceNote),
  );
}

/** Receipts that later turns may refer to by digest, with the turn that listed each in full, oldest first. */
export type ListedReceipts = readonly { readonly digest: string; readonly turnId: string }[];

export const noReceipts: ListedReceipts = [];

const maxLists = 32;

/** Remembers the turn that first listed a receipt; the oldest receipts are forgotten and listed again. */
export function rememberReceipt(lists: ListedReceipts, digest: string, turnId: string): ListedReceipts {
  if (digest === "" || turnOfReceipt(lists, digest) !== undefined) return lists;
  const list = { digest, turnId };
  if (lists.length === 0) return [list];
  // `concat` allocates the exact length: each session keeps its list.
  return (lists.length < maxLists ? lists : lists.slice(1)).concat(list);
}

/** The turn that listed the receipt with that digest. */
export function turnOfReceipt(lists: ListedReceipts, digest: string): string | undefined {
  for (const list of lists) if (list.digest === digest) return list.turnId;
  return undefined;
}

/** Approximate tokens of an image with the hosted models, for any size. */
const tokensPerImage = 1_200;

/** Bytes of a document or recording per token: about right for a text PDF, too high for audio. */
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
        // Base64 has four characters for three bytes; the size behind an address is unknown.
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
