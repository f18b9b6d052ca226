import { AsyncLocalStorage } from "node:async_hooks";
import type { AdmitRequest, WorkContext } from "../../engine/contract.ts";

/** Which of the engine's work the code that runs belongs to, however deep in an agent's tools it is. */
export interface HeldSlots {
  hold<Value>(work: HeldWork, run: () => Promise<Value>): Promise<Value>;
  /** For whom the code that runs works: what it dispatches is that sender's, too. */
  principal(): Pick<AdmitRequest, "principal">;
  /** While a work waits for somebody, others may begin in its place: a person may take days. */
  whileAside<Value>(wait: () => Promise<Value>): Promise<Value>;
}

export interface HeldWork extends Pick<AdmitRequest, "principal"> {
  readonly context: WorkContext;
}

export function createHeldSlots(): HeldSlots {
  const current = new AsyncLocalStorage<HeldWork>();
  return {
    hold: (work, run) => current.run(work, run),
    principal() {
      const principal = current.getStore()?.principal;
      return principal === undefined ? {} : { principal };
    },
    async whileAside(wait) {
      const goOn = current.getStore()?.context.standAside();
      try {
        return await wait();
      } finally {
        goOn?.();
      }
    },
  };
}
