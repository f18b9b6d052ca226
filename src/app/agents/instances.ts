import type { AgentContext } from "../../agents/create-agent.ts";
import type { Agent } from "../../agents/harness.ts";

/** Instances that stay alive while nobody uses them; those used longest ago go first. */
const defaultMaxIdle = 1_000;

/** Which instance, and what its agent's function is told. */
export interface InstanceRequest extends Pick<AgentContext, "id" | "payload"> {
  readonly name: string;
}

export interface Instances {
  /** The instance of that name and id, brought to life when it is not alive. */
  get(request: InstanceRequest): Promise<Agent>;
  /** Makes every instance anew when it is next asked for; what runs in the old one ends first. */
  renew(): void;
  close(): Promise<void>;
}

/** Keeps instances alive, each once: two of one key would write into the same history. */
export function createInstances(
  bring: (request: InstanceRequest) => Promise<Agent>,
  options: { readonly maxIdle?: number } = {},
): Instances {
  const maxIdle = options.maxIdle ?? defaultMaxIdle;
  const alive = new Map<string, Promise<Agent>>();
  const ending = new Map<string, Promise<void>>();

  const end = (key: string, agent: Promise<Agent>): void => {
    alive.delete(key);
    const ended = agent
      .then((live) => live.close({ drain: true }))
      .catch(() => undefined)
      .then(() => {
        if (ending.get(key) === ended) ending.delete(key);
      });
    ending.set(key, ended);
  };
  const endIdle = async (): Promise<void> => {
    for (const [key, agent] of [...alive]) {
      if (alive.size <= maxIdle) return;
      const live = await agent.catch(() => undefined);
      if (live?.busy === false && alive.get(key) === agent) end(key, agent);
    }
  };
  const create = async (key: string, request: InstanceRequest): Promise<Agent> => {
    await ending.get(key);
    return bring(request);
  };

  return {
    get(request) {
      const key = JSON.stringify([request.name, request.id]);
      let agent = alive.get(key);
      if (agent === undefined) {
        const made = create(key, request);
        made.catch(() => {
          if (alive.get(key) === made) alive.delete(key);
        });
        agent = made;
      } else {
        // The map keeps the order of last use.
        alive.delete(key);
      }
      alive.set(key, agent);
      if (alive.size > maxIdle) void endIdle();
      return agent;
    },
    renew() {
      for (const [key, agent] of [...alive]) end(key, agent);
    },
    async close() {
      const agents = [...alive.values()];
      alive.clear();
      await Promise.all(agents.map(async (agent) => (await agent.catch(() => undefined))?.close()));
      await Promise.all(ending.values());
    },
  };
}
