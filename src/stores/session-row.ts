import type { SessionInfo } from "../protocol/session-entry.ts";

/** A row of `sessions`, beside it the key of the session above: `parent_agent` and so on. */
export type SessionRow = Readonly<Record<string, unknown>>;

export function toInfo(row: SessionRow): SessionInfo {
  return {
    agent: String(row.agent),
    instance_id: String(row.instance_id),
    session: String(row.session),
    created_at: String(row.created_at),
    position: Number(row.position),
    ...(typeof row.parent_session === "string"
      ? {
          parent: {
            agent: String(row.parent_agent),
            instance_id: String(row.parent_instance_id),
            session: row.parent_session,
          },
        }
      : {}),
  };
}
