import { isoTime } from "../../base/clock.ts";
import type {
  SessionEntry,
  SessionInfo,
  SessionKey,
  TouchedSession,
  TouchedSessionPage,
} from "../../protocol/session-entry.ts";
import { type InstanceKey, instanceName, sessionName } from "../../protocol/session-name.ts";
import type { StoredWorkspace, WorkspaceCommit, WorkspaceStore } from "../../protocol/workspace-store.ts";
import type { AppendRequest, SessionListing, SessionStore } from "../contract.ts";
import { conflict, placeOf, staleWriter, toCursor } from "../session-row.ts";
import {
  applyChange,
  createListingFilter,
  emptySummary,
  type StoredSummary,
  summarize,
  toSummary,
} from "../session-summary.ts";

interface Log {
  /** Ascending in the order of creation. */
  readonly id: number;
  readonly key: SessionKey;
  readonly created_at: string;
  readonly parent: SessionKey | undefined;
  readonly entries: SessionEntry[];
  /** Ids of recorded inputs; `undefined` until the first one. */
  inputs: Set<string> | undefined;
  touchedAt: number;
  summary: StoredSummary;
}

/**
 * Sessions that exist only as long as the process: for tests, and for work that is never continued.
 *
 * @example
 * import { createAgent } from "kit";
 * import { InMemorySessionStore } from "kit/stores/memory";
 *
 * const store = new InMemorySessionStore();
 * export default createAgent(() => ({ instructions: "Answer briefly.", store }));
 */
export class InMemorySessionStore implements SessionStore {
  readonly #logs = new Map<string, Log>();
  readonly #fences = new Map<string, number>();
  readonly #workspaces = new MemoryWorkspaces((lease) => this.#fences.get(instanceName(lease)));
  readonly workspaces: WorkspaceStore = this.#workspaces;
  readonly #texts = new Map<string, { readonly text: string; readonly at: number }>();
  #createdCount = 0;

  append(request: AppendRequest): void {
    const { key, expected, entries, input, fence, lease_on = key } = request;
    const name = sessionName(key);
    if (fence !== undefined && fence < (this.#fences.get(instanceName(lease_on)) ?? 0)) throw staleWriter();
    let log = this.#logs.get(name);
    if ((log?.entries.length ?? 0) !== expected) throw conflict();
    if (input !== undefined && log?.inputs?.has(input) === true) throw conflict();
    if (log === undefined) {
      const created_at = new Date().toISOString();
      this.#createdCount += 1;
      log = {
        id: this.#createdCount,
        key,
        created_at,
        parent: request.parent,
        entries: [],
        inputs: undefined,
        touchedAt: 0,
        summary: emptySummary,
      };
      this.#logs.set(name, log);
    }
    if (input !== undefined) {
      log.inputs ??= new Set();
      log.inputs.add(input);
    }
    for (const entry of entries) log.entries.push(entry);
    log.summary = applyChange(log.summary, summarize(entries));
    // If the clock was set back, the session must not look older.
    log.touchedAt = Math.max(log.touchedAt, Date.now());
  }

  claim(instance: { readonly agent: string; readonly instance_id: string }, fence: number): void {
    const name = instanceName(instance);
    this.#fences.set(name, Math.max(fence, this.#fences.get(name) ?? 0));
  }

  read(key: SessionKey, after = 0): readonly SessionEntry[] {
    return this.#find(key)?.entries.slice(after) ?? [];
  }

  info(key: SessionKey): SessionInfo | undefined {
    const log = this.#find(key);
    return log === undefined ? undefined : toInfo(log);
  }

  list(filter: { readonly agent: string; readonly instance_id?: string }): readonly SessionInfo[] {
    const found: SessionInfo[] = [];
    for (const log of this.#logs.values()) {
      if (log.key.agent !== filter.agent) continue;
      if (filter.instance_id !== undefined && log.key.instance_id !== filter.instance_id) continue;
      found.push(toInfo(log));
    }
    return found;
  }

  delete(key: SessionKey): void {
    for (const name of this.#withDescendants(key)) this.#logs.delete(name);
    this.#workspaces.removeNow(key);
    this.#forgetFence(key);
  }

  listAll({ limit, cursor, order, count, ...listing }: SessionListing): TouchedSessionPage {
    const fits = createListingFilter(listing);
    const matching = [...this.#logs.values()]
      .map((log) => ({ id: log.id, at: log.touchedAt, session: toTouched(log) }))
      .filter(({ session }) => fits(session));
    const place = placeOf(cursor, order);
    if (order === "recent") matching.sort((one, other) => other.at - one.at || other.id - one.id);
    else if (order === "newest") matching.reverse();
    const following = matching.filter(({ id, at }) => {
      if (cursor === undefined) return true;
      if (order === "recent") return at < place.at || (at === place.at && id < place.id);
      return order === "newest" ? id < place.id : id > place.id;
    });
    const page = following.slice(0, limit);
    const last = page.at(-1);
    return {
      sessions: page.map(({ session }) => session),
      ...(following.length > limit && last !== undefined ? { next_cursor: toCursor(last, order) } : {}),
      ...(count === true ? { total: matching.length } : {}),
    };
  }

  deleteUntouched(key: SessionKey, before: number): boolean {
    const family = this.#withDescendants(key);
    if (!this.#logs.has(sessionName(key))) return false;
    if (family.some((name) => (this.#logs.get(name)?.touchedAt ?? 0) >= before)) return false;
    for (const name of family) this.#logs.delete(name);
    this.#workspaces.removeNow(key);
    this.#forgetFence(key);
    const isOfRun = ({ key: other }: Log): boolean => other.instance_id === key.instance_id;
    const run = instanceName({ agent: "", instance_id: key.instance_id });
    if (this.#fences.has(run) && ![...this.#logs.values()].some(isOfRun)) this.#fences.delete(run);
    return true;
  }

  /** An instance without sessions needs no fence: its next owner claims it before writing. */
  #forgetFence(key: SessionKey): void {
    if (this.#fences.has(instanceName(key)) && this.list(key).length === 0)
      this.#fences.delete(instanceName(key));
  }

  keepText(name: string, text: string): void {
    this.#texts.set(name, { text, at: Date.now() });
  }

  readText(name: string): string | undefined {
    return this.#texts.get(name)?.text;
  }

  pruneTexts(before: number): number {
    const old = [...this.#texts].filter(([, { at }]) => at < before);
    for (const [name] of old) this.#texts.delete(name);
    return old.length;
  }

  #withDescendants(key: SessionKey): readonly string[] {
    const names = [sessionName(key)];
    for (const name of names) {
      for (const [child, log] of this.#logs) {
        if (log.parent !== undefined && sessionName(log.parent) === name) names.push(child);
      }
    }
    return names;
  }

  close(): void {
    this.#logs.clear();
    this.#texts.clear();
  }

  #find(key: SessionKey): Log | undefined {
    return this.#logs.get(sessionName(key));
  }
}

function toTouched(log: Log): TouchedSession {
  return { ...toInfo(log), ...toSummary(log.summary), touched_at: isoTime(log.touchedAt) };
}

function toInfo(log: Log): SessionInfo {
  return {
    ...log.key,
    created_at: log.created_at,
    position: log.entries.length,
    ...(log.parent === undefined ? {} : { parent: log.parent }),
  };
}

interface MemoryWorkspace {
  stored: StoredWorkspace | undefined;
  readonly pieces: Map<string, Uint8Array>;
}

/** Workspaces that exist only as long as the process. */
class MemoryWorkspaces implements WorkspaceStore {
  readonly #workspaces = new Map<string, MemoryWorkspace>();
  readonly #fenceOf: (lease: InstanceKey) => number | undefined;

  constructor(fenceOf: (lease: InstanceKey) => number | undefined) {
    this.#fenceOf = fenceOf;
  }

  async read(key: SessionKey): Promise<StoredWorkspace | undefined> {
    return this.#workspaceOf(key).stored;
  }

  async readPiece(key: SessionKey, name: string): Promise<Uint8Array | undefined> {
    return this.#workspaceOf(key).pieces.get(name);
  }

  async writePiece(key: SessionKey, name: string, data: Uint8Array): Promise<void> {
    this.#workspaceOf(key).pieces.set(name, Uint8Array.from(data));
  }

  async commit(key: SessionKey, commit: WorkspaceCommit): Promise<void> {
    const { expected, manifest, pieces, fence, lease_on = key } = commit;
    const workspace = this.#workspaceOf(key);
    if (fence !== undefined && fence < (this.#fenceOf(lease_on) ?? 0)) throw staleWriter();
    if ((workspace.stored?.version ?? 0) !== expected) throw conflict();
    workspace.stored = { version: expected + 1, manifest };
    const needed = new Set(pieces);
    for (const name of workspace.pieces.keys()) if (!needed.has(name)) workspace.pieces.delete(name);
  }

  async remove(key: SessionKey): Promise<void> {
    this.removeNow(key);
  }

  removeNow(key: SessionKey): void {
    this.#workspaces.delete(sessionName(key));
  }

  #workspaceOf(key: SessionKey): MemoryWorkspace {
    const name = sessionName(key);
    const workspace = this.#workspaces.get(name) ?? { stored: undefined, pieces: new Map() };
    this.#workspaces.set(name, workspace);
    return workspace;
  }
}
