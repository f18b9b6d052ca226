import type { AgentContext } from "../../agents/define/create-agent.ts";
import type { Agent } from "../../agents/harness.ts";
import { type InstanceKey, instanceName } from "../../protocol/session-name.ts";

/** Limits for idle instances; the least recently used are closed first. */
export interface InstanceLimits {
  /** Default 1,000. */
  readonly maxIdle?: number | undefined;
  /** How long an idle instance stays open, in ms; default: until `maxIdle` is exceeded. Only if no caller keeps instances. */
  readonly idleMs?: number | undefined;
}

/** Creates the live agent of an instance. The agent's function gets the payload. */
export type CreateInstance = (instance: InstanceKey, payload: AgentContext["payload"]) => Promise<Agent>;

interface Live {
  readonly agent: Promise<Agent>;
  /** Undefined until the agent is created. */
  created: Agent | undefined;
  /** The fence under which it was opened. */
  readonly fence: number | undefined;
  usedAt: number;
}

/** Keeps one live agent per instance: two would write to the same history. */
export class Instances {
  readonly #create: CreateInstance;
  readonly #maxIdle: number;
  /** Closes in batches: a map is slow to find its first key after many single deletions. */
  readonly #closeBeyond: number;
  readonly #idleMs: number | undefined;
  readonly #fenceOf: (instance: InstanceKey) => number | undefined;
  // In the order of last use.
  readonly #alive = new Map<string, Live>();
  readonly #ending = new Map<string, Promise<void>>();
  #sweeper: NodeJS.Timeout | undefined;

  constructor(
    create: CreateInstance,
    { maxIdle = 1_000, idleMs }: InstanceLimits = {},
    fenceOf: (instance: InstanceKey) => number | undefined = () => undefined,
  ) {
    this.#fenceOf = fenceOf;
    this.#create = create;
    this.#maxIdle = maxIdle;
    this.#closeBeyond = maxIdle + Math.floor(maxIdle / 32);
    this.#idleMs = idleMs;
  }

  /** Returns the live agent of the instance; creates it if there is none. */
  get(instance: InstanceKey, payload: AgentContext["payload"] = {}): Promise<Agent> {
    const key = instanceName(instance);
    const existing = this.#alive.get(key);
    const live = existing ?? this.#begin(key, instance, payload);
    live.usedAt = performance.now();
    // Move the entry to the end of the order of use.
    this.#alive.delete(key);
    this.#alive.set(key, live);
    if (existing === undefined) this.#sweepLater();
    if (this.#alive.size > this.#closeBeyond) void this.#endIdle(() => this.#alive.size > this.#maxIdle);
    return live.agent;
  }

  /** Whether the instance is live and runs an operation. */
  isBusy(instance: InstanceKey): boolean {
    return this.#alive.get(instanceName(instance))?.created?.busy === true;
  }

  /** Closes every instance after its operations have ended; the next call of `get` creates a new agent. */
  renew(): void {
    for (const [key, live] of [...this.#alive]) void this.#end(key, live);
  }

  /** Closes one instance in the same way; resolves once it is closed. */
  async release(instance: InstanceKey): Promise<void> {
    const key = instanceName(instance);
    const live = this.#alive.get(key);
    await (live === undefined ? this.#ending.get(key) : this.#end(key, live));
  }

  /** Closes an instance that was opened under another fence: another process can have worked for it since then. */
  async releaseUnless(instance: InstanceKey, fence: number | undefined): Promise<void> {
    const live = this.#alive.get(instanceName(instance));
    if (live !== undefined && live.fence !== fence) await this.release(instance);
  }

  /**
   * Runs `work` while the instance is closed: callers of `get` wait until it has ended. Returns undefined without running
   * `work` if the instance is busy.
   */
  async whileAtRest<Value>(instance: InstanceKey, work: () => Promise<Value>): Promise<Value | undefined> {
    const key = instanceName(instance);
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

  /**
   * Calls `use` with the live agent of the instance. Without one, `use` gets undefined, and callers of `get` wait until it has
   * ended.
   */
  async withLive(instance: InstanceKey, use: (agent: Agent | undefined) => Promise<void>): Promise<void> {
    const key = instanceName(instance);
    for (let isDone = false; !isDone; ) {
      const live = this.#alive.get(key);
      const agent = await live?.agent.catch(() => undefined);
      if (this.#alive.get(key) !== live) continue;
      if (agent === undefined)
        isDone = (await this.whileAtRest(instance, () => use(undefined).then(() => true))) ?? false;
      else {
        await use(agent);
        isDone = true;
      }
    }
  }

  async close(): Promise<void> {
    clearTimeout(this.#sweeper);
    const agents = [...this.#alive.values()];
    this.#alive.clear();
    await Promise.all(agents.map(async ({ agent }) => (await agent.catch(() => undefined))?.close()));
    await Promise.all(this.#ending.values());
  }

  #begin(key: string, instance: InstanceKey, payload: AgentContext["payload"]): Live {
    const fence = this.#fenceOf(instance);
    const create = async (): Promise<Agent> => {
      await this.#ending.get(key);
      return this.#create(instance, payload);
    };
    const live: Live = { agent: create(), created: undefined, fence, usedAt: 0 };
    live.agent.then(
      (agent) => {
        live.created = agent;
      },
      () => {
        if (this.#alive.get(key) === live) this.#alive.delete(key);
      },
    );
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
