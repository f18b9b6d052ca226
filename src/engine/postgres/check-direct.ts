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

async function isPooled(connection: OwnConnection, url: string): Promise<boolean> {
  const other = await openConnection(url);
  try {
    // A pooler gives the process that was used last to the next transaction.
    if (other.backend === connection.backend) return true;
    await other.query("BEGIN");
    const { rows } = await connection.query("SELECT pg_backend_pid() AS backend");
    return Number(rows[0]?.backend) !== connection.backend;
  } finally {
    other.destroy();
  }
}
