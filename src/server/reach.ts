import type { Exposure } from "../app/config/server-schema.ts";
import type { LoadedAgent } from "../app/sources/load-source.ts";

/** Which agents a server answers for. */
export interface Reach {
  /** Whether requests reach the agent. The default agent without a file declares nothing. */
  serves(agent: Pick<LoadedAgent, "triggers"> | undefined): boolean;
  /** Whether they reach it only because this is `kit dev`: `kit start` would answer 404. */
  isDevOnly(agent: Pick<LoadedAgent, "triggers">): boolean;
}

/** `isOpen` says whether the server serves every agent because nobody but its developer reaches it. */
export function createReach(expose: Exposure, isOpen: () => boolean): Reach {
  const declares = (agent: Pick<LoadedAgent, "triggers"> | undefined): boolean =>
    expose === "all" || agent?.triggers.webhook === true;
  return {
    serves: (agent) => declares(agent) || isOpen(),
    isDevOnly: (agent) => !declares(agent) && isOpen(),
  };
}
