import type { PostgresDatabase } from "../../postgres/database.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import type { StoredWorkspace, WorkspaceCommit, WorkspaceStore } from "../../protocol/workspace-store.ts";
import { conflict, staleWriter } from "../session-row.ts";

/** Workspaces in the database of the sessions. */
export class PostgresWorkspaces implements WorkspaceStore {
  readonly #database: PostgresDatabase;
  readonly #schema: string;

  /** `schema` is quoted. */
  constructor(database: PostgresDatabase, schema: string) {
    this.#database = database;
    this.#schema = schema;
  }

  async read(key: SessionKey): Promise<StoredWorkspace | undefined> {
    const [row] = await this.#query(
      "SELECT version, manifest FROM $s.workspaces WHERE agent = $1 AND instance_id = $2 AND session = $3",
      toValues(key),
    );
    return row === undefined ? undefined : { version: Number(row.version), manifest: String(row.manifest) };
  }

  async readPiece(key: SessionKey, name: string): Promise<Uint8Array | undefined> {
    const [row] = await this.#query(
      "SELECT data FROM $s.workspace_pieces WHERE agent = $1 AND instance_id = $2 AND session = $3 AND name = $4",
      [...toValues(key), name],
    );
    return row?.data as Uint8Array | undefined;
  }

  async writePiece(key: SessionKey, name: string, data: Uint8Array): Promise<void> {
    await this.#query(
      "INSERT INTO $s.workspace_pieces (agent, instance_id, session, name, data) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
      [...toValues(key), name, Buffer.from(data)],
    );
  }

  async commit(key: SessionKey, commit: WorkspaceCommit): Promise<void> {
    const { expected, manifest, pieces, fence, lease_on = key } = commit;
    const lease = [lease_on.agent, lease_on.instance_id];
    const change =
      expected === 0
        ? `INSERT INTO $s.workspaces (agent, instance_id, session, version, manifest)
           SELECT $1, $2, $3, 1, $4 FROM passes WHERE ok AND $5::bigint = 0 ON CONFLICT DO NOTHING RETURNING 1`
        : `UPDATE $s.workspaces SET version = version + 1, manifest = $4 FROM passes
           WHERE ok AND agent = $1 AND instance_id = $2 AND session = $3 AND version = $5::bigint RETURNING 1`;
    // The row of the fence is held until the change is written: a claim that comes meanwhile waits.
    const rows = await this.#query(
      `WITH gate AS MATERIALIZED (
         SELECT fence FROM $s.fences WHERE agent = $8 AND instance_id = $9 AND $7::bigint IS NOT NULL FOR SHARE
       ), passes AS (SELECT NOT EXISTS (SELECT 1 FROM gate WHERE fence > $7::bigint) AS ok),
       changed AS (${change}),
       unneeded AS (
         DELETE FROM $s.workspace_pieces WHERE agent = $1 AND instance_id = $2 AND session = $3
           AND NOT (name = ANY($6::text[])) AND EXISTS (SELECT 1 FROM changed)
       )
       SELECT 1 FROM changed`,
      [...toValues(key), manifest, expected, [...pieces], fence ?? null, ...lease],
    );
    if (rows.length > 0) return;
    const claimed = await this.#query(
      "SELECT fence FROM $s.fences WHERE agent = $1 AND instance_id = $2",
      lease,
    );
    throw claimed.some((row) => fence !== undefined && fence < Number(row.fence))
      ? staleWriter()
      : conflict();
  }

  async remove(key: SessionKey): Promise<void> {
    await this.#query(
      `WITH pieces AS (DELETE FROM $s.workspace_pieces WHERE agent = $1 AND instance_id = $2 AND session = $3)
       DELETE FROM $s.workspaces WHERE agent = $1 AND instance_id = $2 AND session = $3`,
      toValues(key),
    );
  }

  async #query(sql: string, values: unknown[]): ReturnType<PostgresDatabase["query"]> {
    return await this.#database.query(sql.replaceAll("$s.", `${this.#schema}.`), values);
  }
}

function toValues({ agent, instance_id, session }: SessionKey): string[] {
  return [agent, instance_id, session];
}
