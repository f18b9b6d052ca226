import type { RateLimit } from "../../app/config/server-schema.ts";
import { KitError } from "../../base/kit-error.ts";

/** Takes one request of somebody's allowance. Throws `too_many_requests` when it is used up. */
export type RateLimiter = (who: string) => void;

interface Bucket {
  tokens: number;
  filledAt: number;
}

/** Past this many, the one that nobody has used for the longest time is forgotten: it is full again. */
const maxBuckets = 100_000;

/** A token bucket for each principal, in memory. `now` is in milliseconds and never goes back. */
export function createRateLimiter(
  limit: RateLimit,
  now: () => number = () => performance.now(),
): RateLimiter {
  const burst = limit.burst ?? limit.requests;
  const perMs = limit.requests / ((limit.per_seconds ?? 60) * 1_000);
  // The map keeps the order of last use.
  const buckets = new Map<string, Bucket>();
  return (who) => {
    const at = now();
    const bucket = buckets.get(who) ?? { tokens: burst, filledAt: at };
    bucket.tokens = Math.min(burst, bucket.tokens + (at - bucket.filledAt) * perMs);
    bucket.filledAt = at;
    buckets.delete(who);
    buckets.set(who, bucket);
    if (buckets.size > maxBuckets) {
      for (const oldest of buckets.keys()) {
        buckets.delete(oldest);
        break;
      }
    }
    if (bucket.tokens < 1) {
      throw new KitError({
        code: "too_many_requests",
        message: "You have made too many requests.",
        meta: { retry_after_s: Math.max(1, Math.ceil((1 - bucket.tokens) / perMs / 1_000)) },
      });
    }
    bucket.tokens -= 1;
  };
}
