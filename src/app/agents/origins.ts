import { AsyncLocalStorage } from "node:async_hooks";
import type { OperationOrigin } from "../../agents/agent-runtime.ts";

/** Whose work the code at work is part of, over all that it waits for. */
export interface Origins {
  current(): OperationOrigin | undefined;
  /** Runs work as part of that, and of nothing around it. */
  run<Value>(origin: OperationOrigin, work: () => Value): Value;
}

const storage = new AsyncLocalStorage<OperationOrigin>();

/** One for the process: work of one application may ask another for some. */
export const origins: Origins = {
  current: () => storage.getStore(),
  run: (origin, work) => storage.run(origin, work),
};
