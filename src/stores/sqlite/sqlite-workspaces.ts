import type { SessionKey } from "../../protocol/session-entry.ts";
import type { StoredWorkspace, WorkspaceCommit, WorkspaceStore } from "../../protocol/workspace-store.ts";
import type { LockedWrites } from "../../sqlite/database-file.ts";
import type { SqlInput } from "../../sqlite/statements.ts";
import {
  createTransaction,
  type Database,
  type Statement,
  type Transaction,
} from "../../sqlite/statements.ts";
import { conflict, staleWriter } from "../session-row.ts";

/** Workspaces in the file of the sessions. */
export class SqliteWorkspaces implements WorkspaceStore {
  readonly #database: Database;
  readonly #writes: LockedWrites;
  readonly #transaction: Transaction;
  readonly #prepared = new Map<string, Statement>();

  constructor(database: Database, writes: LockedWrites) {
    this.#database = database;
    this.#writes = writes;
    this.#transaction = createTransaction(database);
  }

  async read(key: SessionKey): Promise<StoredWorkspace | undefined> {
    const row = this.#get(
      "SELECT version, manifest FROM workspaces WHERE agent = ? AND instance_id = ? AND session = ?",
      [...toValues(key)],
    );
    return row === undefined ? undefined : { version: Number(row.version), manifest: String(row.manifest) };
  }

  async readPiece(key: SessionKey, name: string): Promise<Uint8Array | undefined> {
    const row = this.#get(
      "SELECT data FROM workspace_pieces WHERE agent = ? AND instance_id = ? AND session = ? AND name = ?",
      [...toValues(key), name],
    );
    return row?.data as Uint8Array | undefined;
  }

  async writePiece(key: SessionKey, name: string, data: Uint8Array): Promise<void> {
    await this.#writes.run(() => {
      this.#run(
        "INSERT OR IGNORE INTO workspace_pieces (agent, instance_id, session, name, data) VALUES (?, ?, ?, ?, ?)",
        [...toValues(key), name, data],
      );
    });
  }

  async commit(key: SessionKey, commit: WorkspaceCommit): Promise<void> {
    await this.#writes.run(() => this.#transaction(() => this.#commit(key, commit)));
  }

  async remove(key: SessionKey): Promise<void> {
    await this.#writes.run(() => this.#transaction(() => this.removeNow(key)));
  }

  /** Like `remove`, inside the caller's transaction. */
  removeNow(key: SessionKey): void {
    for (const table of ["workspaces", "workspace_pieces"])
      this.#run(`DELETE FROM ${table} WHERE agent = ? AND instance_id = ? AND session = ?`, toValues(key));
  }

  #commit(key: SessionKey, commit: WorkspaceCommit): void {
    const { expected, manifest, pieces, fence, lease_on = key } = commit;
    const row = this.#get("SELECT fence FROM fences WHERE agent = ? AND instance_id = ?", [
      lease_on.agent,
      lease_on.instance_id,
    ]);
    if (fence !== undefined && row !== undefined && fence < Number(row.fence)) throw staleWriter();
    const changed =
      expected === 0
        ? this.#run(
            "INSERT OR IGNORE INTO workspaces (agent, instance_id, session, version, manifest) VALUES (?, ?, ?, 1, ?)",
            [...toValues(key), manifest],
          )
        : this.#run(
            "UPDATE workspaces SET version = version + 1, manifest = ? WHERE agent = ? AND instance_id = ? AND session = ? AND version = ?",
            [manifest, ...toValues(key), expected],
          );
    if (changed === 0) throw conflict();
    this.#run(
      `DELETE FROM workspace_pieces WHERE agent = ? AND instance_id = ? AND session = ?
       AND name NOT IN (SELECT value FROM json_each(?))`,
      [...toValues(key), JSON.stringify(pieces)],
    );
  }

  #get(sql: string, values: readonly SqlInput[]): Readonly<Record<string, unknown>> | undefined {
    const row: unknown = this.#statement(sql).get(...values);
    return row as Readonly<Record<string, unknown>> | undefined;
  }

  #run(sql: string, values: readonly SqlInput[]): number {
    return Number(this.#statement(sql).run(...values).changes);
  }

  #statement(sql: string): Statement {
    const statement = this.#prepared.get(sql) ?? this.#database.prepare(sql);
    this.#prepared.set(sql, statement);
    return statement;
  }
}

function toValues({ agent, instance_id, session }: SessionKey): readonly string[] {
  return [agent, instance_id, session];
}
