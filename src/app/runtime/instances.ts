import type { AgentContext } from "../../agents/define/create-agent.ts";
import type { Agent } from "../../agents/harness.ts";

/** How many instances stay alive while nobody uses them; those used longest ago go first. */
export interface InstanceLimits {
  /** Default 1,000. */
  readonly maxIdle?: number;
  /** How long; default: as long as there is room. Only where nobody keeps an instance for later. */
  readonly idleMs?: number;
}

/** Which instance, and what its agent's function is told. */
export interface InstanceRequest extends Pick<AgentContext, "id" | "payload"> {
  readonly name: string;
}

export interface Instances {
  /** The instance of that name and id, brought to life when it is not alive. */
  get(request: InstanceRequest): Promise<Agent>;
  /** Makes every instance anew when it is next asked for; what runs in the old one ends first. */
  renew(): void;
  /** The same for one instance; resolves once the old one has ended. */
  release(name: string, id: string): Promise<void>;
  /**
   * Does something while the instance is not alive: whoever asks for it meanwhile waits. Undefined, with nothing done, where it
   * is at work.
   */
  whileAtRest<Value>(name: string, id: string, work: () => Promise<Value>): Promise<Value | undefined>;
  close(): Promise<void>;
}

interface Live {
  readonly agent: Promise<Agent>;
  usedAt: number;
}

/** Keeps instances alive, each once: two of one key would write into the same history. */
export function createInstances(
  bring: (request: InstanceRequest) => Promise<Agent>,
  { maxIdle = 1_000, idleMs }: InstanceLimits = {},
): Instances {
  // In the order of last use.
  const alive = new Map<string, Live>();
  const ending = new Map<string, Promise<void>>();
  let sweeper: NodeJS.Timeout | undefined;

  const end = (key: string, { agent }: Live): Promise<void> => {
    alive.delete(key);
    const ended = agent
      .then((live) => live.close({ drain: true }))
      .catch(() => undefined)
      .then(() => {
        if (ending.get(key) === ended) ending.delete(key);
      });
    ending.set(key, ended);
    return ended;
  };
  const endIdle = async (mayEnd: (live: Live) => boolean): Promise<void> => {
    for (const [key, live] of alive) {
      if (!mayEnd(live)) return;
      const agent = await live.agent.catch(() => undefined);
      if (agent?.busy === false && alive.get(key) === live && mayEnd(live)) void end(key, live);
    }
  };
  const sweep = async (ms: number): Promise<void> => {
    const usedBefore = performance.now() - ms;
    await endIdle((live) => live.usedAt <= usedBefore);
    sweeper = undefined;
    if (alive.size > 0) sweepLater();
  };
  const sweepLater = (): void => {
    if (idleMs === undefined) return;
    sweeper ??= setTimeout(() => void sweep(idleMs), idleMs / 2).unref();
  };
  const create = async (key: string, request: InstanceRequest): Promise<Agent> => {
    await ending.get(key);
    return bring(request);
  };

  return {
    get(request) {
      const key = keyOf(request.name, request.id);
      let live = alive.get(key);
      if (live === undefined) {
        const made: Live = { agent: create(key, request), usedAt: performance.now() };
        made.agent.catch(() => {
          if (alive.get(key) === made) alive.delete(key);
        });
        live = made;
        sweepLater();
      } else {
        live.usedAt = performance.now();
        alive.delete(key);
      }
      alive.set(key, live);
      if (alive.size > maxIdle) void endIdle(() => alive.size > maxIdle);
      return live.agent;
    },
    renew() {
      for (const [key, live] of [...alive]) void end(key, live);
    },
    async release(name, id) {
      const key = keyOf(name, id);
      const live = alive.get(key);
      await (live === undefined ? ending.get(key) : end(key, live));
    },
    async whileAtRest(name, id, work) {
      const key = keyOf(name, id);
      const live = alive.get(key);
      const agent = await live?.agent.catch(() => undefined);
      // Of what came while this waited, nothing is known: the next look is soon enough.
      if (alive.get(key) !== live || agent?.busy === true) return undefined;
      const ended = live === undefined ? (ending.get(key) ?? Promise.resolve()) : end(key, live);
      const done = ended.then(work);
      const away: Promise<void> = done.then(
        () => undefined,
        () => undefined,
      );
      const over = away.then(() => {
        if (ending.get(key) === over) ending.delete(key);
      });
      ending.set(key, over);
      return await done;
    },
    async close() {
      clearTimeout(sweeper);
      const agents = [...alive.values()];
      alive.clear();
      await Promise.all(agents.map(async ({ agent }) => (await agent.catch(() => undefined))?.close()));
      await Promise.all(ending.values());
    },
  };
}

function keyOf(name: string, id: string): string {
  return JSON.stringify([name, id]);
}
