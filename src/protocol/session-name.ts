import type { SessionKey } from "./session-page.ts";

/** Names an instance of an agent, with all its sessions. */
export type InstanceKey = Pick<SessionKey, "agent" | "instance_id">;

/** A text that identifies an instance, as the key of a map. Names cannot contain NUL. */
export function instanceName(key: InstanceKey): string {
  return OpenSessionKey.instanceOf(key) ?? `${key.agent}\0${key.instance_id}`;
}

/** A text that identifies a session, as the key of a map. */
export function sessionName(key: SessionKey): string {
  return OpenSessionKey.nameOf(key) ?? `${instanceName(key)}\0${key.session}`;
}

/** The key of a session in use: it makes the names of the session and its instance once, for every look-up and append. */
export class OpenSessionKey implements SessionKey {
  readonly agent: string;
  readonly instance_id: string;
  readonly session: string;
  readonly #name: string;
  #instance: string | undefined;

  constructor({ agent, instance_id }: InstanceKey, session: string) {
    this.agent = agent;
    this.instance_id = instance_id;
    this.session = session;
    this.#name = `${agent}\0${instance_id}\0${session}`;
  }

  static instanceOf(key: InstanceKey): string | undefined {
    if (!(#instance in key)) return undefined;
    key.#instance ??= `${key.agent}\0${key.instance_id}`;
    return key.#instance;
  }

  static nameOf(key: SessionKey): string | undefined {
    return #name in key ? key.#name : undefined;
  }
}

/** The name of the stream of an agent's instance, with the events of all its sessions. */
export function agentStream(agent: string, instanceId: string): string {
  return `agent/${agent}/${instanceId}`;
}

/** The name of a run's stream. */
export function runStream(runId: string): string {
  return `run/${runId}`;
}
