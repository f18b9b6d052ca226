import { AsyncLocalStorage } from "node:async_hooks";
import type { AdmitRequest, WorkContext } from "../../engine/contract.ts";
import type { RestingWork, Wait } from "./resting-work.ts";

/** Which of the engine's work the code that runs belongs to, however deep in an agent's tools it is. */
export interface HeldSlots {
  hold<Value>(work: HeldWork, run: () => Promise<Value>): Promise<Value>;
  /** For whom the code that runs works: what it dispatches is that sender's, too. */
  principal(): Pick<AdmitRequest, "principal">;
  /**
   * While a work waits for somebody, others may begin in its place: a person may take days. After a while it rests,
   * if it can.
   */
  whileAside<Value>(ask: (signal: AbortSignal) => Promise<Value>, wait: Wait): Promise<Value>;
}

export interface HeldWork extends Pick<AdmitRequest, "principal"> {
  readonly context: WorkContext;
  /** Of work that is stored, and so can be gone on with. */
  readonly resting?: RestingWork | undefined;
}

interface Waiting {
  readonly resting: RestingWork;
  readonly mayRest: () => boolean;
  readonly since: number;
}

/** Most decisions of a person at work are there by then. */
const defaultRestMs = 5_000;

export function createHeldSlots(restMs: number = defaultRestMs): HeldSlots {
  const current = new AsyncLocalStorage<HeldWork>();
  // In the order in which they began to wait.
  const waiting = new Set<Waiting>();
  let looks = false;

  function look(): void {
    looks = false;
    const before = performance.now() - restMs;
    for (const each of waiting) {
      if (each.since > before) break;
      if (each.mayRest()) each.resting.rest();
    }
    lookLater();
  }

  /** One timer for all that wait. It holds no work up, and no process. */
  function lookLater(): void {
    if (looks || waiting.size === 0) return;
    looks = true;
    current.exit(() => setTimeout(look, restMs / 4).unref());
  }

  async function askResting<Value>(
    resting: RestingWork,
    ask: (signal: AbortSignal) => Promise<Value>,
    wait: Wait,
  ): Promise<Value> {
    const { mayRest } = wait;
    if (mayRest === undefined) return await resting.ask(ask, wait);
    const own: Waiting = { resting, mayRest, since: performance.now() };
    waiting.add(own);
    lookLater();
    try {
      return await resting.ask(ask, wait);
    } finally {
      waiting.delete(own);
    }
  }

  return {
    hold: (work, run) => current.run(work, run),
    principal() {
      const principal = current.getStore()?.principal;
      return principal === undefined ? {} : { principal };
    },
    async whileAside(ask, wait) {
      const { context, resting } = current.getStore() ?? {};
      const goOn = context?.standAside();
      try {
        return await (resting === undefined ? ask(wait.signal) : askResting(resting, ask, wait));
      } finally {
        goOn?.();
      }
    },
  };
}
