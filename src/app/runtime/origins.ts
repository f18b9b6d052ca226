import { AsyncLocalStorage } from "node:async_hooks";
import type { OperationOrigin, Origins } from "../../agents/agent-runtime.ts";

const storage = new AsyncLocalStorage<OperationOrigin>();

/** One for the process: work of one application may ask another for some. */
export const origins: Origins = {
  current: () => storage.getStore(),
  run: (origin, work) => storage.run(origin, work),
};
