import type { AgentContext } from "../../agents/define/create-agent.ts";
import type { Agent } from "../../agents/harness.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";

/** Limits for idle instances; the least recently used are closed first. */
export interface InstanceLimits {
  /** Default 1,000. */
  readonly maxIdle?: number | undefined;
  /** How long an idle instance stays open, in ms; default: until `maxIdle` is exceeded. Only if no caller keeps instances. */
  readonly idleMs?: number | undefined;
}

/** An instance, and the payload for its agent's function. */
export interface InstanceRequest extends Pick<AgentContext, "id" | "payload"> {
  readonly name: string;
}

interface Live {
  readonly agent: Promise<Agent>;
  /** False until the agent is created. */
  busy(): boolean;
  usedAt: number;
}

/** Keeps one live agent per instance: two would write to the same history. */
export class Instances {
  readonly #create: (request: InstanceRequest) => Promise<Agent>;
  readonly #maxIdle: number;
  readonly #idleMs: number | undefined;
  // In the order of last use.
  readonly #alive = new Map<string, Live>();
  readonly #ending = new Map<string, Promise<void>>();
  #sweeper: NodeJS.Timeout | undefined;

  constructor(
    create: (request: InstanceRequest) => Promise<Agent>,
    { maxIdle = 1_000, idleMs }: InstanceLimits = {},
  ) {
    this.#create = create;
    this.#maxIdle = maxIdle;
    this.#idleMs = idleMs;
  }

  /** Returns the live agent of the instance; creates it if there is none. */
  get(request: InstanceRequest): Promise<Agent> {
    const key = instanceKey({ agent: request.name, instance_id: request.id });
    const existing = this.#alive.get(key);
    const live = existing ?? this.#begin(key, request);
    live.usedAt = performance.now();
    // Move the entry to the end of the order of use.
    this.#alive.delete(key);
    this.#alive.set(key, live);
    if (existing === undefined) this.#sweepLater();
    if (this.#alive.size > this.#maxIdle) void this.#endIdle(() => this.#alive.size > this.#maxIdle);
    return live.agent;
  }

  /** Whether the instance is live and runs an operation. */
  isBusy(name: string, id: string): boolean {
    return this.#alive.get(instanceKey({ agent: name, instance_id: id }))?.busy() === true;
  }

  /** Closes every instance after its operations have ended; the next call of `get` creates a new agent. */
  renew(): void {
    for (const [key, live] of [...this.#alive]) void this.#end(key, live);
  }

  /** Closes one instance in the same way; resolves once it is closed. */
  async release(name: string, id: string): Promise<void> {
    const key = instanceKey({ agent: name, instance_id: id });
    const live = this.#alive.get(key);
    await (live === undefined ? this.#ending.get(key) : this.#end(key, live));
  }

  /**
   * Runs `work` while the instance is closed: callers of `get` wait until it has ended. Returns undefined without running
   * `work` if the instance is busy.
   */
  async whileAtRest<Value>(name: string, id: string, work: () => Promise<Value>): Promise<Value | undefined> {
    const key = instanceKey({ agent: name, instance_id: id });
    const live = this.#alive.get(key);
    const agent = await live?.agent.catch(() => undefined);
    // Another caller can have used the instance in the meantime: the next pass tries again.
    if (this.#alive.get(key) !== live || agent?.busy === true) return undefined;
    const ended = live === undefined ? (this.#ending.get(key) ?? Promise.resolve()) : this.#end(key, live);
    const done = ended.then(work);
    void this.#keepEnding(
      key,
      done.then(
        () => undefined,
        () => undefined,
      ),
    );
    return await done;
  }

  async close(): Promise<void> {
    clearTimeout(this.#sweeper);
    const agents = [...this.#alive.values()];
    this.#alive.clear();
    await Promise.all(agents.map(async ({ agent }) => (await agent.catch(() => undefined))?.close()));
    await Promise.all(this.#ending.values());
  }

  #begin(key: string, request: InstanceRequest): Live {
    const create = async (): Promise<Agent> => {
      await this.#ending.get(key);
      return this.#create(request);
    };
    let created: Agent | undefined;
    const agent = create().then((instance) => {
      created = instance;
      return instance;
    });
    const live: Live = { agent, busy: () => created?.busy === true, usedAt: 0 };
    live.agent.catch(() => {
      if (this.#alive.get(key) === live) this.#alive.delete(key);
    });
    return live;
  }

  #end(key: string, { agent }: Live): Promise<void> {
    this.#alive.delete(key);
    return this.#keepEnding(
      key,
      agent.then((live) => live.close({ drain: true })).catch(() => undefined),
    );
  }

  /** Delays the next agent of the key until `ending` has settled. */
  #keepEnding(key: string, ending: Promise<void>): Promise<void> {
    const ended = ending.then(() => {
      if (this.#ending.get(key) === ended) this.#ending.delete(key);
    });
    this.#ending.set(key, ended);
    return ended;
  }

  async #endIdle(mayEnd: (live: Live) => boolean): Promise<void> {
    for (const [key, live] of this.#alive) {
      if (!mayEnd(live)) return;
      const agent = await live.agent.catch(() => undefined);
      if (agent?.busy === false && this.#alive.get(key) === live && mayEnd(live)) void this.#end(key, live);
    }
  }

  #sweepLater(): void {
    const idleMs = this.#idleMs;
    if (idleMs === undefined) return;
    this.#sweeper ??= setTimeout(() => void this.#sweep(idleMs), idleMs / 2).unref();
  }

  async #sweep(idleMs: number): Promise<void> {
    const usedBefore = performance.now() - idleMs;
    await this.#endIdle((live) => live.usedAt <= usedBefore);
    this.#sweeper = undefined;
    if (this.#alive.size > 0) this.#sweepLater();
  }
}

/** Returns one text for an instance, as the key of a map. */
export function instanceKey({ agent, instance_id }: Pick<SessionKey, "agent" | "instance_id">): string {
  return JSON.stringify([agent, instance_id]);
}
