import { isoTime } from "../../base/clock.ts";
import type {
  SessionEntry,
  SessionInfo,
  SessionKey,
  TouchedSessionPage,
} from "../../protocol/session-entry.ts";
import type { WorkspaceStore } from "../../protocol/workspace-store.ts";
import type { AppendRequest, SessionListing, SessionStore } from "../contract.ts";
import { conflict, placeOf, staleWriter } from "../session-row.ts";
import { MemoryWorkspaces } from "./memory-workspaces.ts";

interface Log {
  /** Rises with each session that is made. */
  readonly id: number;
  readonly key: SessionKey;
  readonly created_at: string;
  readonly parent: SessionKey | undefined;
  readonly entries: SessionEntry[];
  /** None until one comes with a name. */
  inputs: Set<string> | undefined;
  touchedAt: number;
}

/**
 * Sessions that live as long as the process: for tests, and for work that is never continued.
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
  readonly #workspaces = new MemoryWorkspaces((lease) => this.#fences.get(instanceOf(lease)));
  readonly workspaces: WorkspaceStore = this.#workspaces;
  readonly #texts = new Map<string, { readonly text: string; readonly at: number }>();
  #made = 0;

  append(request: AppendRequest): void {
    const { key, expected, entries, input, fence, lease_on = key } = request;
    const name = nameOf(key);
    if (fence !== undefined && fence < (this.#fences.get(instanceOf(lease_on)) ?? 0)) throw staleWriter();
    let log = this.#logs.get(name);
    if ((log?.entries.length ?? 0) !== expected) throw conflict();
    if (input !== undefined && log?.inputs?.has(input) === true) throw conflict();
    if (log === undefined) {
      const created_at = new Date().toISOString();
      this.#made += 1;
      log = {
        id: this.#made,
        key,
        created_at,
        parent: request.parent,
        entries: [],
        inputs: undefined,
        touchedAt: 0,
      };
      this.#logs.set(name, log);
    }
    if (input !== undefined) {
      log.inputs ??= new Set();
      log.inputs.add(input);
    }
    for (const entry of entries) log.entries.push(entry);
    // A clock that was set back makes nothing older than it is.
    log.touchedAt = Math.max(log.touchedAt, Date.now());
  }

  claim(instance: { readonly agent: string; readonly instance_id: string }, fence: number): void {
    const name = instanceOf(instance);
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
    for (const name of this.#withThoseBelow(key)) this.#logs.delete(name);
    this.#workspaces.removeNow(key);
    this.#forgetFence(key);
  }

  listAll({ limit, cursor, agent, instance_id, order }: SessionListing): TouchedSessionPage {
    const place = placeOf(cursor);
    const isNewest = order === "newest";
    const found = [...this.#logs.values()].filter(
      ({ id, key }) =>
        (cursor === undefined || (isNewest ? id < place : id > place)) &&
        (agent === undefined || key.agent === agent) &&
        (instance_id === undefined || key.instance_id === instance_id),
    );
    if (isNewest) found.reverse();
    const page = found.slice(0, limit);
    const sessions = page.map((log) => ({ ...toInfo(log), touched_at: isoTime(log.touchedAt) }));
    return found.length > limit ? { sessions, next_cursor: String(page.at(-1)?.id) } : { sessions };
  }

  deleteUntouched(key: SessionKey, before: number): boolean {
    const doomed = this.#withThoseBelow(key);
    if (!this.#logs.has(nameOf(key))) return false;
    if (doomed.some((name) => (this.#logs.get(name)?.touchedAt ?? 0) >= before)) return false;
    for (const name of doomed) this.#logs.delete(name);
    this.#workspaces.removeNow(key);
    this.#forgetFence(key);
    const isOfRun = ({ key: other }: Log): boolean => other.instance_id === key.instance_id;
    const run = instanceOf({ agent: "", instance_id: key.instance_id });
    if (this.#fences.has(run) && ![...this.#logs.values()].some(isOfRun)) this.#fences.delete(run);
    return true;
  }

  /** With its last session, an instance needs no fence: its next owner claims it before it writes. */
  #forgetFence(key: SessionKey): void {
    if (this.#fences.has(instanceOf(key)) && this.list(key).length === 0)
      this.#fences.delete(instanceOf(key));
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

  #withThoseBelow(key: SessionKey): readonly string[] {
    const names = [nameOf(key)];
    for (const name of names) {
      for (const [child, log] of this.#logs) {
        if (log.parent !== undefined && nameOf(log.parent) === name) names.push(child);
      }
    }
    return names;
  }

  close(): void {
    this.#logs.clear();
    this.#texts.clear();
  }

  #find(key: SessionKey): Log | undefined {
    return this.#logs.get(nameOf(key));
  }
}

function toInfo(log: Log): SessionInfo {
  return {
    ...log.key,
    created_at: log.created_at,
    position: log.entries.length,
    ...(log.parent === undefined ? {} : { parent: log.parent }),
  };
}

// Names may hold any character but NUL, so NUL keeps the three apart.
function nameOf(key: SessionKey): string {
  return `${key.agent}\u0000${key.instance_id}\u0000${key.session}`;
}

function instanceOf({
  agent,
  instance_id,
}: {
  readonly agent: string;
  readonly instance_id: string;
}): string {
  return JSON.stringify([agent, instance_id]);
}
