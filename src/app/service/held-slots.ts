import { AsyncLocalStorage } from "node:async_hooks";
import type { WorkContext } from "../../engine/contract.ts";

/** Which of the engine's work the code that runs belongs to, however deep in an agent's tools it is. */
export interface HeldSlots {
  hold<Value>(work: WorkContext, run: () => Promise<Value>): Promise<Value>;
  /** While a work waits for somebody, others may begin in its place: a person may take days. */
  whileAside<Value>(wait: () => Promise<Value>): Promise<Value>;
}

export function createHeldSlots(): HeldSlots {
  const current = new AsyncLocalStorage<WorkContext>();
  return {
    hold: (work, run) => current.run(work, run),
    async whileAside(wait) {
      const goOn = current.getStore()?.standAside();
      try {
        return await wait();
      } finally {
        goOn?.();
      }
    },
  };
}
