import { KitError } from "../../base/kit-error.ts";
import { type OwnConnection, openConnection } from "../../postgres/pool.ts";

/** Throws `invalid_request` if the address leads to a pooler that does not keep a connection's session, and so its locks. */
export async function checkDirect(connection: OwnConnection, url: string): Promise<void> {
  if (connection.isDirect || !(await isPooled(connection, url))) return;
  connection.destroy();
  throw new KitError({
    code: "invalid_request",
    message:
      "The address of the engine's database leads to a pooler, which gives each transaction another connection: the locks of this machine would not hold.",
    hint: "Set KIT_ENGINE_DIRECT_URL, or engine.direct_url, to the address of the database itself. The other connections can keep the pooler.",
  });
}

/** Other clients of a pooler can hide it for a moment. */
const tries = 10;

async function isPooled(connection: OwnConnection, url: string): Promise<boolean> {
  const other = await openConnection(url);
  try {
    for (let time = 0; time < tries; time += 1) {
      const before = await backendOf(connection);
      await other.query("BEGIN");
      // A pooler gives the process that was used last to the next transaction, or the one that has rested the longest.
      if ((await backendOf(other)) === before || (await backendOf(connection)) !== before) return true;
      await other.query("ROLLBACK");
    }
    return false;
  } finally {
    other.destroy();
  }
}

async function backendOf(connection: OwnConnection): Promise<number> {
  const { rows } = await connection.query("SELECT pg_backend_pid() AS backend");
  return Number(rows[0]?.backend);
}
