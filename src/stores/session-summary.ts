import { isRecord } from "../base/record.ts";
import { textOf } from "../protocol/read-records.ts";
import type { SessionEntry, TouchedSession } from "../protocol/session-entry.ts";
import { sessionName } from "../protocol/session-name.ts";
import type { SessionState, SessionSummary } from "../protocol/session-page.ts";
import type { SessionListing } from "./contract.ts";

/** The changes that appended entries make to the summary of their session. */
export interface SummaryChange {
  /** Replaces the title of a session that has none. */
  readonly title: string | undefined;
  /** The new state with its error; `undefined` if the state stays. */
  readonly state: SessionState | undefined;
  readonly error: SessionSummary["error"];
  /** Tokens to add. */
  readonly tokens: number;
  /** US dollars to add; null if the price of a model call is unknown, which makes the sum unknown. */
  readonly cost: number | null;
}

/** The summary in a store's row. A null is a sum that is unknown, because an earlier version has written entries. */
export interface StoredSummary {
  readonly title: string | null;
  readonly state: SessionState;
  readonly error: SummaryChange["error"] | null;
  readonly tokens: number | null;
  readonly cost: number | null;
}

export const emptySummary: StoredSummary = { title: null, state: "idle", error: null, tokens: 0, cost: 0 };

/** The note about an operation that has ended, of `agents/log`. */
const endNote = "operation_end";
/** The note with the usage of model calls whose answers are not in the log. */
const spentNote = "spent";
/** The last of the entries that a fork has copied: the session that they come from has paid for them. */
const forkNote = "fork";

/**
 * Returns what entries change about the summary of the session to which they are appended. Every store uses it, so that lists
 * need not read a log. It looks only at the entries that are appended. `hasTitle`: the session needs no title.
 */
export function summarize(entries: readonly SessionEntry[], hasTitle = false): SummaryChange {
  const change: Writable<SummaryChange> = {
    title: undefined,
    state: undefined,
    error: undefined,
    tokens: 0,
    cost: 0,
  };
  for (const entry of entries) {
    if (entry.type === "message") {
      const { message } = entry;
      change.state = "idle";
      change.error = undefined;
      if (message.role === "assistant" && message.source === undefined) addUsage(change, message.usage);
      if (!hasTitle && message.role === "user" && message.source === undefined)
        change.title ??= toTitle(textOf(message));
    } else if (entry.type === "note") {
      const { name, value } = entry;
      if (name === endNote) [change.state, change.error] = readEnd(value);
      else if (name === spentNote) addUsage(change, value);
      else if (name === forkNote)
        Object.assign(change, { tokens: 0, cost: 0, state: "idle", error: undefined });
    }
  }
  return change;
}

type Writable<Value> = { -readonly [Field in keyof Value]: Value[Field] };

function addUsage(change: Writable<SummaryChange>, usage: unknown): void {
  const { total_tokens, cost } = (usage ?? {}) as {
    total_tokens?: unknown;
    cost?: { total?: unknown };
  };
  change.tokens += typeof total_tokens === "number" ? total_tokens : 0;
  change.cost = change.cost === null || typeof cost?.total !== "number" ? null : change.cost + cost.total;
}

/** Applies a change to a stored summary. */
export function applyChange(stored: StoredSummary, change: SummaryChange): StoredSummary {
  const { state } = change;
  return {
    title: stored.title ?? change.title ?? null,
    state: state ?? stored.state,
    error: state === undefined ? stored.error : (change.error ?? null),
    tokens: stored.tokens === null ? null : stored.tokens + change.tokens,
    cost: stored.cost === null || change.cost === null ? null : stored.cost + change.cost,
  };
}

/** The fields of a listed session. */
export function toSummary({ title, state, error, tokens, cost }: StoredSummary): SessionSummary {
  return {
    ...(title === null ? {} : { title }),
    state,
    ...(error ? { error } : {}),
    cost,
    ...(tokens === null ? {} : { tokens }),
  };
}

const longestTitle = 80;
/** Characters of a message that are looked at: messages can have megabytes. */
const readForTitle = 2_000;

/** The first words of a text, on one line. `undefined` for a text without words. */
function toTitle(text: string): string | undefined {
  const line = text
    .slice(0, readForTitle)
    .replace(/[\s\p{Cc}]+/gu, " ")
    .trim();
  if (line === "") return undefined;
  if (line.length <= longestTitle) return line;
  const characters = [...line];
  if (characters.length <= longestTitle) return line;
  const start = characters.slice(0, longestTitle - 1).join("");
  const words = start.replace(/ \S*$/, "");
  // A text whose first word is long, or that is written without spaces, is cut inside of it.
  return `${words.length > start.length / 2 ? words : start}…`;
}

function readEnd(value: unknown): [SessionState, SummaryChange["error"]] {
  const { status, error } = isRecord(value) ? value : {};
  const state = status === "failed" ? "failed" : status === "aborted" ? "stopped" : "idle";
  if (state === "idle" || !isRecord(error)) return [state, undefined];
  const { type, message, cause } = error;
  if (typeof type !== "string" || typeof message !== "string") return [state, undefined];
  return [state, { type, message: message.slice(0, 500), ...causeIn(cause) }];
}

/** The first line of a cause: lists show one line of it. */
function causeIn(cause: unknown): Pick<NonNullable<SummaryChange["error"]>, "cause"> {
  if (!isRecord(cause) || typeof cause.name !== "string" || typeof cause.message !== "string") return {};
  const [line = ""] = cause.message.trim().split(/[\r\n]/, 1);
  return line === "" ? {} : { cause: { name: cause.name, message: line.slice(0, 300) } };
}

/** Returns whether a session fits a listing, apart from its page. */
export function createListingFilter(
  listing: Omit<SessionListing, "limit">,
): (session: TouchedSession) => boolean {
  const { agent, instance_id, parents_only, state, search, since, until } = listing;
  const only = listing.only && new Set(listing.only.map(sessionName));
  const except = listing.except && new Set(listing.except.map(sessionName));
  return (session) => {
    const touchedAt = Date.parse(session.touched_at);
    return (
      (agent === undefined || session.agent === agent) &&
      (instance_id === undefined || session.instance_id === instance_id) &&
      (parents_only !== true || session.parent === undefined) &&
      (state === undefined || (session.state ?? "idle") === state) &&
      (since === undefined || touchedAt >= since) &&
      (until === undefined || touchedAt < until) &&
      (search === undefined || holds(session, search)) &&
      (only === undefined || only.has(sessionName(session))) &&
      !except?.has(sessionName(session))
    );
  };
}

function holds({ title = "", instance_id, agent, session }: TouchedSession, search: string): boolean {
  const text = search.toLowerCase();
  return [title, instance_id, agent, session].some((field) => field.toLowerCase().includes(text));
}
