import type { SessionKey } from "./session-page.ts";

/** Names an instance of an agent, with all its sessions. */
export type InstanceKey = Pick<SessionKey, "agent" | "instance_id">;

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

  static instanceOf(key: InstanceKey): string {
    if (!(#instance in key)) return `${key.agent}\0${key.instance_id}`;
    key.#instance ??= `${key.agent}\0${key.instance_id}`;
    return key.#instance;
  }

  static nameOf(key: SessionKey): string {
    return #name in key ? key.#name : `${key.agent}\0${key.instance_id}\0${key.session}`;
  }
}

/** A text that identifies an instance, as the key of a map. Names cannot contain NUL. */
export const instanceName: (key: InstanceKey) => string = OpenSessionKey.instanceOf;

/** A text that identifies a session, as the key of a map. */
export const sessionName: (key: SessionKey) => string = OpenSessionKey.nameOf;

/** The name of the stream of an agent's instance, with the events of all its sessions. */
export function agentStream(agent: string, instanceId: string): string {
  return `agent/${agent}/${instanceId}`;
}

/** The name of a run's stream. */
export function runStream(runId: string): string {
  return `run/${runId}`;
}
