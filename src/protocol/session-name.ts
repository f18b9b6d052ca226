import type { SessionKey } from "./session-page.ts";

/** Names an instance of an agent, with all its sessions. */
export type InstanceKey = Pick<SessionKey, "agent" | "instance_id">;

/** A text that identifies an instance, as the key of a map. Names cannot contain NUL. */
export function instanceName({ agent, instance_id }: InstanceKey): string {
  return `${agent}\0${instance_id}`;
}

/** A text that identifies a session, as the key of a map. */
export function sessionName(key: SessionKey): string {
  return OpenSessionKey.nameOf(key) ?? `${instanceName(key)}\0${key.session}`;
}

/** The key of a session that is open: it makes the session's name once, for every append to its log. */
export class OpenSessionKey implements SessionKey {
  readonly agent: string;
  readonly instance_id: string;
  readonly session: string;
  readonly #name: string;

  constructor({ agent, instance_id }: InstanceKey, session: string) {
    this.agent = agent;
    this.instance_id = instance_id;
    this.session = session;
    this.#name = `${agent}\0${instance_id}\0${session}`;
  }

  static nameOf(key: SessionKey): string | undefined {
    return #name in key ? key.#name : undefined;
  }
}
