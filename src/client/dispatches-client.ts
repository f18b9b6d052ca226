import type { DispatchPage, DispatchQuery, DispatchRecord } from "../protocol/dispatch.ts";
import type { CallOptions } from "./call-options.ts";
import type { Transport } from "./transport.ts";

/** What became of inputs that were handed over. */
export interface DispatchesClient {
  /** Newest first; `status: "failed"` are the dead letters. */
  list(query?: DispatchQuery, options?: CallOptions): Promise<DispatchPage>;
  /** Throws `not_found`. */
  get(dispatchId: string, options?: CallOptions): Promise<DispatchRecord>;
  /** Gives a dead letter its attempts again. Throws `not_found`, and `conflict` for one that is none. */
  retry(dispatchId: string, options?: CallOptions): Promise<DispatchRecord>;
  /** Takes back what waits, or aborts what runs. False when it had ended. */
  cancel(dispatchId: string, options?: CallOptions): Promise<boolean>;
}

export function createDispatchesClient({ request }: Transport): DispatchesClient {
  return {
    list: (query = {}, options = {}) => request({ method: "GET", path: ["dispatches"], query, options }),
    get: (dispatchId, options = {}) => request({ method: "GET", path: ["dispatches", dispatchId], options }),
    retry: (dispatchId, options = {}) =>
      request({ method: "POST", path: ["dispatches", dispatchId, "retry"], body: {}, options }),
    async cancel(dispatchId, options = {}) {
      const path = ["dispatches", dispatchId, "cancel"];
      const call = { method: "POST", path, body: {}, options, repeatable: true } as const;
      return (await request<{ cancelled: boolean }>(call)).cancelled;
    },
  };
}
