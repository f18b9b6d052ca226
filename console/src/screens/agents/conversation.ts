import type {
  CallItem,
  EndItem,
  HistoryMessage,
  HistoryPage,
  JoinedItem,
  OperationItem,
  Transcript,
  TranscriptItem,
  Usage,
} from "../../../../src/client/index.ts";

export interface Picture {
  readonly media_type: string;
  readonly data: string;
}

interface Base {
  readonly id: string;
  readonly operation_id: string;
}

/** A call with the pictures of its result, which only the history has. */
export type CallEntry = CallItem & { readonly pictures?: readonly Picture[] };

/** A message of the user. */
type UserEntry = Base & {
  readonly kind: "user";
  readonly text: string;
  readonly pictures: readonly Picture[];
  /** Set for a message that joined the operation. */
  readonly joined_from?: string | undefined;
};

/** The end of an operation whose events are not on this page. Its cost and time may not be known. */
export type PastEnd = Omit<EndItem, "usage" | "duration_ms" | "started_at"> & {
  readonly duration_ms: number | undefined;
  readonly tokens: number | undefined;
  readonly cost: number | null;
};

/** A line of a conversation. */
export type Entry =
  | Exclude<TranscriptItem, { readonly kind: "turn" | "end" | "call" | "operation" | "joined" }>
  | CallEntry
  | UserEntry
  | PastEnd
  | (Base & { readonly kind: "kit"; readonly source: string; readonly text: string });

type Parts = readonly { readonly type: string }[];

function picturesOf(content: Parts): readonly Picture[] {
  return content.flatMap((part) =>
    part.type === "image" && "data" in part && typeof part.data === "string" && "media_type" in part
      ? [{ data: part.data, media_type: String(part.media_type) }]
      : [],
  );
}

function textOf(content: Parts): string {
  return content.map((part) => (part.type === "text" && "text" in part ? String(part.text) : "")).join("");
}

/** How an operation ended, as a page of the history names it. */
type PastOperation = NonNullable<HistoryPage["ends"]>[number];

interface ToolResult {
  readonly type: string;
  readonly tool_call_id?: unknown;
  readonly content?: unknown;
  readonly is_error?: unknown;
  readonly outcome?: unknown;
}

/** The entries of messages, oldest first; each operation is followed by its end. */
export function readHistory(
  messages: readonly HistoryMessage[],
  ends: readonly PastOperation[] = [],
): readonly Entry[] {
  const known = new Map(ends.map((end) => [end.operation_id, end]));
  const entries: Entry[] = [];
  let start = 0;
  for (const [at, { operation_id }] of messages.entries()) {
    if (messages[at + 1]?.operation_id === operation_id) continue;
    const all = messages.slice(start, at + 1);
    start = at + 1;
    entries.push(...readMessages(all));
    if (operation_id === undefined) continue;
    const end = readEnd(operation_id, all, known.get(operation_id));
    if (end !== undefined) entries.push(end);
  }
  return entries;
}

const endStates = { completed: "done", failed: "failed", aborted: "stopped" } as const;

/** The end that the history names; for a completed operation, the one that its messages show. */
function readEnd(
  operation_id: string,
  messages: readonly HistoryMessage[],
  end: PastOperation | undefined,
): PastEnd | undefined {
  const [first] = messages;
  const last = messages.at(-1);
  const isAnswered = last?.role === "assistant" && last.finish_reason !== "tool-calls";
  if (end === undefined && !isAnswered) return undefined;
  const isWhole = first?.role === "user" && first.source === undefined;
  const took =
    isWhole && last !== undefined ? Date.parse(last.timestamp) - Date.parse(first.timestamp) : undefined;
  const { tokens, cost } =
    end?.usage === undefined ? sumUsage(isWhole ? messages : []) : readUsage(end.usage);
  return {
    id: `end-${operation_id}`,
    kind: "end",
    operation_id,
    depth: 0,
    state: end === undefined ? "done" : endStates[end.status],
    attempts: end?.attempts ?? 1,
    error: end?.error,
    duration_ms: end?.duration_ms ?? took,
    tokens,
    cost,
  };
}

function readUsage(usage: Usage): Pick<PastEnd, "tokens" | "cost"> {
  return { tokens: usage.total_tokens, cost: usage.cost.total };
}

function sumUsage(messages: readonly HistoryMessage[]): Pick<PastEnd, "tokens" | "cost"> {
  const usages = messages.flatMap(({ usage }) => (usage === undefined ? [] : [usage]));
  if (usages.length === 0) return { tokens: undefined, cost: null };
  const costs = usages.map(({ cost }) => cost.total);
  return {
    tokens: usages.reduce((sum, usage) => sum + usage.total_tokens, 0),
    cost: costs.includes(null) ? null : costs.reduce<number>((sum, cost) => sum + (cost ?? 0), 0),
  };
}

function readMessages(messages: readonly HistoryMessage[]): readonly Entry[] {
  const entries: Entry[] = [];
  const positions = new Map<string, number>();
  for (const message of messages) {
    const base = { operation_id: message.operation_id ?? "", depth: 0, started_at: message.timestamp };
    const name = `message-${message.position ?? message.timestamp}`;
    if (message.role === "user") {
      const text = textOf(message.content);
      const entry = { ...base, id: name, text };
      if (message.source !== undefined) entries.push({ ...entry, kind: "kit", source: message.source });
      else {
        const { joined_from } = message;
        entries.push({ ...entry, kind: "user", pictures: picturesOf(message.content), joined_from });
      }
      continue;
    }
    for (const [at, part] of message.content.entries()) {
      const id = `${name}-${at}`;
      if (part.type === "text" || part.type === "reasoning") {
        const kind = part.type === "text" ? "text" : "thinking";
        const text = String(part.text ?? "");
        if (text !== "") entries.push({ ...base, id, kind, turn_id: id, text, is_open: false });
      } else if (part.type === "tool_call") {
        const tool_call_id = String(part.tool_call_id);
        const { args } = part;
        positions.set(tool_call_id, entries.length);
        entries.push({
          ...base,
          id,
          kind: "call",
          tool_call_id,
          tool: String(part.tool),
          args,
          state: "stopped",
        });
      } else if (part.type === "tool_result") {
        const result: ToolResult = part;
        const place = positions.get(String(result.tool_call_id));
        const call = place === undefined ? undefined : entries[place];
        if (place === undefined || call?.kind !== "call") continue;
        const content = Array.isArray(result.content) ? result.content : [];
        const state = result.is_error === true ? "failed" : result.outcome === "unknown" ? "stopped" : "done";
        entries[place] = { ...call, state, result: textOf(content), pictures: picturesOf(content) };
      }
    }
  }
  return entries;
}

/**
 * Joins the history with the live work after it. After a restart, or if a person tries a failed message again, an operation of the
 * history goes on: its message is shown once, and the work replaces the end and the calls that it does again.
 */
export function joinEntries(past: readonly Entry[], live: readonly Entry[]): readonly Entry[] {
  const going = new Set(live.map(({ operation_id }) => operation_id));
  if (!past.some(({ operation_id }) => going.has(operation_id))) return [...past, ...live];
  const calls = new Set(live.flatMap((entry) => (entry.kind === "call" ? [callName(entry)] : [])));
  const asked = new Set(past.flatMap((entry) => (entry.kind === "user" ? [messageName(entry)] : [])));
  return [
    ...past.filter((entry) => {
      if (entry.kind === "end") return !going.has(entry.operation_id);
      return entry.kind !== "call" || entry.state !== "stopped" || !calls.has(callName(entry));
    }),
    ...live.filter((entry) => entry.kind !== "user" || !asked.has(messageName(entry))),
  ];
}

function messageName({ operation_id, joined_from }: UserEntry): string {
  return joined_from ?? operation_id;
}

function callName({ operation_id, tool_call_id }: CallEntry): string {
  return `${operation_id} ${tool_call_id}`;
}

/** Entries of an item: an item that has not changed keeps its entry. */
const entryOf = new WeakMap<TranscriptItem, Entry>();

/**
 * The entries of a live transcript. The work of tasks is left out, except for calls that wait for a person. `pictures` are those of
 * messages, by operation: events have only the text.
 */
export function readTranscript(
  { items }: Transcript,
  pictures: ReadonlyMap<string, readonly Picture[]>,
): readonly Entry[] {
  return items.flatMap((item): readonly Entry[] => {
    const isWaiting = item.kind === "call" && item.state === "waiting";
    if (item.kind === "turn" || (item.depth > 0 && !isWaiting)) return [];
    if (item.kind !== "operation" && item.kind !== "end" && item.kind !== "joined") return [item];
    if (item.kind === "operation" && item.message === undefined) return [];
    const sent = (item.kind === "operation" && pictures.get(item.operation_id)) || [];
    const known = entryOf.get(item);
    if (known !== undefined && (known.kind !== "user" || known.pictures.length === sent.length))
      return [known];
    const entry = item.kind === "end" ? readLiveEnd(item) : readMessage(item, sent);
    entryOf.set(item, entry);
    return [entry];
  });
}

function readMessage(
  { id, operation_id, message = "", ...item }: OperationItem | JoinedItem,
  pictures: readonly Picture[],
): UserEntry {
  const joined_from = item.kind === "joined" ? item.joined_from : undefined;
  return { id, operation_id, kind: "user", text: message, pictures, joined_from };
}

function readLiveEnd({ usage, started_at: _, ...end }: EndItem): PastEnd {
  return { ...end, ...(usage === undefined ? { tokens: undefined, cost: null } : readUsage(usage)) };
}

/** The pictures that an operation's message had, once the history has them. */
export function picturesIn(messages: readonly HistoryMessage[], operation_id: string): readonly Picture[] {
  const sent = messages.find((message) => message.role === "user" && message.operation_id === operation_id);
  return sent === undefined ? [] : picturesOf(sent.content);
}

/** The text of the message that an operation answered, to send it again. */
export function findMessage(entries: readonly Entry[], operation_id: string): UserEntry | undefined {
  return entries.find((entry) => entry.kind === "user" && entry.operation_id === operation_id) as
    | UserEntry
    | undefined;
}
