import type { SessionEntry, SessionInfo, SessionKey } from "../../protocol/session-entry.ts";
import { conflict } from "../conflict.ts";
import type { AppendRequest, SessionStore } from "../contract.ts";

interface Log {
  readonly key: SessionKey;
  readonly created_at: string;
  readonly parent: SessionKey | undefined;
  readonly entries: SessionEntry[];
  /** None until one comes with a name. */
  inputs: Set<string> | undefined;
}

/** Sessions that live as long as the process: for tests, and for work that nobody will continue. */
export class InMemorySessionStore implements SessionStore {
  readonly #logs = new Map<string, Log>();

  append(request: AppendRequest): void {
    const { key, expected, entries, input } = request;
    const name = nameOf(key);
    let log = this.#logs.get(name);
    if ((log?.entries.length ?? 0) !== expected) throw conflict();
    if (input !== undefined && log?.inputs?.has(input) === true) throw conflict();
    if (log === undefined) {
      const created_at = new Date().toISOString();
      log = { key, created_at, parent: request.parent, entries: [], inputs: undefined };
      this.#logs.set(name, log);
    }
    if (input !== undefined) {
      log.inputs ??= new Set();
      log.inputs.add(input);
    }
    for (const entry of entries) log.entries.push(entry);
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
    const doomed = [nameOf(key)];
    for (let name = doomed.pop(); name !== undefined; name = doomed.pop()) {
      this.#logs.delete(name);
      for (const [child, log] of this.#logs) {
        if (log.parent !== undefined && nameOf(log.parent) === name) doomed.push(child);
      }
    }
  }

  close(): void {
    this.#logs.clear();
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
