import type { Principal, RateLimit } from "../../app/config/access-config.ts";
import type { Access, RequestHead } from "./access.ts";
import { networkOf } from "./network-of.ts";
import { createRateLimiter } from "./rate-limit.ts";

/** Access and allowance together: what every request and every WebSocket passes. */
export interface Gate extends Pick<Access, "crossOriginHeaders"> {
  /** Gives who asks. Throws what `Access.check` throws, and `too_many_requests`. */
  check(head: RequestHead & { readonly remoteAddress: string }): Promise<Principal | undefined>;
  /** Takes one more of somebody's allowance. Throws `too_many_requests`. */
  count(principal: Principal | undefined, remoteAddress: string): void;
}

export function createGate(access: Access, rateLimit: RateLimit | undefined): Gate {
  const limiter = rateLimit && createRateLimiter(rateLimit);
  const count: Gate["count"] = (principal, remoteAddress) => {
    // Headers that name another address are anybody's to write: a proxy's own address is counted.
    limiter?.(principal === undefined ? `address ${networkOf(remoteAddress)}` : `principal ${principal.id}`);
  };
  return {
    crossOriginHeaders: access.crossOriginHeaders,
    count,
    async check(head) {
      const principal = await access.check(head).catch((error: unknown) => {
        // Whoever tries keys has an allowance, too.
        count(undefined, head.remoteAddress);
        throw error;
      });
      // Whoever watches over the server asks often, and a preflight is the browser's question.
      if (head.path !== "/health" && head.method !== "OPTIONS") count(principal, head.remoteAddress);
      return principal;
    },
  };
}
