import type { Approvals } from "../../agents/approvals/approvals.ts";
import type { Engine, WaitingListing, WaitingPlace } from "../../engine/contract.ts";
import type { BrowserLogins } from "../../mcp/auth/browser-logins.ts";
import type { ApprovalRequest } from "../../protocol/approval.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import { sessionName } from "../../protocol/session-name.ts";
import type { WaitingItem, WaitingSignal } from "../../protocol/waiting.ts";

/** Selects a page of what waits for a person. */
export interface InboxListing extends WaitingListing {
  /** Only calls, signals or logins; default: all. */
  readonly kind?: WaitingItem["kind"] | undefined;
}

export interface InboxPage {
  /** Oldest first. */
  readonly items: readonly WaitingItem[];
  /** The number of items on all pages. */
  readonly total: number;
}

/** The place of an item in the list. */
export function placeOfItem(item: WaitingItem): WaitingPlace {
  const { requested_at: at } = item;
  switch (item.kind) {
    case "call":
      return { at, id: item.approval.approval_id, position: 0 };
    case "signal":
      return { at, id: item.run_id, position: item.position };
    case "login":
      return { at, id: `login_${item.server}`, position: 0 };
  }
}

interface InboxParts {
  readonly engine: Engine;
  readonly approvals: Pick<Approvals, "list">;
}

/** Creates the list of what waits for a person: the calls of agents, the signals of runs, and the logins at MCP servers. */
export function createInbox({
  engine,
  approvals,
  logins,
}: InboxParts & { readonly logins?: Pick<BrowserLogins, "needed"> | undefined }): (
  listing: InboxListing,
) => Promise<InboxPage> {
  const calls = async (listing: WaitingListing): Promise<InboxPage> => {
    const page = await engine.waitingCalls?.page?.(listing);
    if (page === undefined) return toPage((await approvals.list()).map(toItem), listing);
    return { items: page.items.map(toItem), total: page.total };
  };
  const signals = async (listing: WaitingListing): Promise<InboxPage> => {
    const page = await engine.listWaitingSignals?.(listing);
    if (page === undefined) return toPage(await readSignals(engine), listing);
    return { items: page.items, total: page.total ?? page.items.length };
  };
  const neededLogins = (listing: WaitingListing): InboxPage =>
    toPage(
      (logins?.needed() ?? []).map(({ since, ...login }) => ({
        kind: "login",
        requested_at: since,
        ...login,
      })),
      listing,
    );
  const sources = { call: calls, signal: signals, login: neededLogins } as const;
  return async ({ kind, ...listing }) => {
    const asked = kind === undefined ? Object.values(sources) : [sources[kind]];
    const pages = await Promise.all(asked.map((read) => read(listing)));
    const items = pages.flatMap((page) => page.items).toSorted(compareItems);
    return { items: items.slice(0, listing.limit), total: pages.reduce((sum, { total }) => sum + total, 0) };
  };
}

/**
 * Creates the list of the sessions in which calls wait; with `among`, only those that it names. It does not read the calls: their
 * arguments can be long.
 */
export function createWaitingSessions({
  engine,
  approvals,
}: InboxParts): (among?: readonly SessionKey[]) => Promise<readonly SessionKey[]> {
  return async (among) => {
    const sessions = await engine.waitingCalls?.sessions?.(among);
    if (sessions !== undefined) return sessions;
    const names = among && new Set(among.map(sessionName));
    const waiting = new Map<string, SessionKey>();
    for (const { agent, instance_id, session } of await approvals.list()) {
      const key = { agent, instance_id, session };
      const name = sessionName(key);
      if (names?.has(name) !== false) waiting.set(name, key);
    }
    return [...waiting.values()];
  };
}

function toItem(approval: ApprovalRequest): WaitingItem {
  return { kind: "call", requested_at: approval.requested_at, approval };
}

/** A page of a list that was read as a whole. */
function toPage(all: readonly WaitingItem[], { limit, after }: WaitingListing): InboxPage {
  const following = all.filter((item) => after === undefined || comparePlaces(placeOfItem(item), after) > 0);
  return { items: following.toSorted(compareItems).slice(0, limit), total: all.length };
}

/** The signals that runs wait for, in an engine that does not list them. */
async function readSignals(engine: Engine): Promise<readonly WaitingSignal[]> {
  const signals: WaitingSignal[] = [];
  let cursor: string | undefined;
  do {
    const page = await engine.listRuns({ status: "waiting", limit: 1_000, cursor });
    for (const { run_id, workflow, payload, waiting_for = [], started_at, accepted_at } of page.items) {
      for (const [at, { signal, until }] of waiting_for.entries()) {
        if (signal === undefined) continue;
        const payload_start = [...JSON.stringify(payload ?? null)].slice(0, 200).join("");
        const requested_at = started_at ?? accepted_at;
        const wait = { run_id, workflow, position: at + 1, signal, until, payload_start };
        signals.push({ kind: "signal", requested_at, ...wait });
      }
    }
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  return signals;
}

function compareItems(one: WaitingItem, other: WaitingItem): number {
  return comparePlaces(placeOfItem(one), placeOfItem(other));
}

/** The order of the list, for sorting. */
export function comparePlaces(one: WaitingPlace, other: WaitingPlace): number {
  if (one.at !== other.at) return one.at < other.at ? -1 : 1;
  if (one.id !== other.id) return one.id < other.id ? -1 : 1;
  return one.position - other.position;
}
