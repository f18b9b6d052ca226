import type { AgentContext } from "../../agents/define/create-agent.ts";
import type { Agent } from "../../agents/harness.ts";

/** How many idle instances stay alive; the least recently used go first. */
export interface InstanceLimits {
  /** Default 1,000. */
  readonly maxIdle?: number | undefined;
  /** How long, in ms; default: as long as there is room. Only where no caller keeps an instance for later. */
  readonly idleMs?: number | undefined;
}

/** Which instance, and the payload that its agent's function is given. */
export interface InstanceRequest extends Pick<AgentContext, "id" | "payload"> {
  readonly name: string;
}

interface Live {
  readonly agent: Promise<Agent>;
  /** False until it has begun. */
  busy(): boolean;
  usedAt: number;
}

/** Keeps instances alive, each once: two of one key would write into the same history. */
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

  /** The instance of that name and id, created when it is not alive. */
  get(request: InstanceRequest): Promise<Agent> {
    const key = keyOf(request.name, request.id);
    const known = this.#alive.get(key);
    const live = known ?? this.#begin(key, request);
    live.usedAt = performance.now();
    // Last in the order of use.
    this.#alive.delete(key);
    this.#alive.set(key, live);
    if (known === undefined) this.#sweepLater();
    if (this.#alive.size > this.#maxIdle) void this.#endIdle(() => this.#alive.size > this.#maxIdle);
    return live.agent;
  }

  /** Whether the instance is alive and at work. */
  isBusy(name: string, id: string): boolean {
    return this.#alive.get(keyOf(name, id))?.busy() === true;
  }

  /** Ends every instance, which is created anew when it is next asked for; its operations end first. */
  renew(): void {
    for (const [key, live] of [...this.#alive]) void this.#end(key, live);
  }

  /** The same for one instance; resolves once it has ended. */
  async release(name: string, id: string): Promise<void> {
    const key = keyOf(name, id);
    const live = this.#alive.get(key);
    await (live === undefined ? this.#ending.get(key) : this.#end(key, live));
  }

  /**
   * Runs `work` while the instance is not alive: callers who ask for it meanwhile wait. Undefined, without running it,
   * where the instance is busy.
   */
  async whileAtRest<Value>(name: string, id: string, work: () => Promise<Value>): Promise<Value | undefined> {
    const key = keyOf(name, id);
    const live = this.#alive.get(key);
    const agent = await live?.agent.catch(() => undefined);
    // Another caller may have come while this one waited: the next pass is soon enough.
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
    let begun: Agent | undefined;
    const agent = create().then((one) => {
      begun = one;
      return one;
    });
    const live: Live = { agent, busy: () => begun?.busy === true, usedAt: 0 };
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

  /** The next instance of the key begins once that is over. */
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

function keyOf(name: string, id: string): string {
  return JSON.stringify([name, id]);
}
