import type { SessionKey } from "./session-page.ts";

/** Names an instance of an agent, with all its sessions. */
export type InstanceKey = Pick<SessionKey, "agent" | "instance_id">;

/** A text that identifies an instance, as the key of a map. Names cannot contain NUL. */
export function instanceName({ agent, instance_id }: InstanceKey): string {
  return `${agent}\0${instance_id}`;
}

/** A text that identifies a session, as the key of a map. */
export function sessionName(key: SessionKey): string {
  return `${instanceName(key)}\0${key.session}`;
}
