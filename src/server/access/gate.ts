import { isIPv6 } from "node:net";
import type { RateLimit } from "../../app/config/server-schema.ts";
import { KitError } from "../../base/kit-error.ts";
import type { Principal } from "../../protocol/access.ts";
import type { Access, RequestHead } from "./access.ts";
import { hostNameOf } from "./host.ts";

/** Access and allowance together: what every request and every WebSocket passes. */
export interface Gate extends Pick<Access, "crossOriginHeaders"> {
  /** Gives who asks. Throws what `Access.check` throws, and `too_many_requests`. */
  check(head: RequestHead & { readonly remoteAddress: string }): Promise<Principal | undefined>;
  /** Counts one more request of a sender. Throws `too_many_requests`. */
  count(principal: Principal | undefined, remoteAddress: string): void;
}

export function createGate(
  access: Access,
  rateLimit: RateLimit | undefined,
  onRefused: (advice: string) => void = () => undefined,
): Gate {
  const advise = createAdvice(onRefused);
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
        // Failed authentication counts against the rate limit.
        count(undefined, head.remoteAddress);
        advise(error, head);
        throw error;
      });
      // Health checks and CORS preflights are not counted.
      if (head.path !== "/health" && head.method !== "OPTIONS") count(principal, head.remoteAddress);
      return principal;
    },
  };
}

/** How many pages and names are remembered: a stranger may make up any number. */
const mostAdvice = 100;

function createAdvice(onRefused: (advice: string) => void): (error: unknown, head: RequestHead) => void {
  const given = new Set<string>();
  return (error, { headers, host }) => {
    const hint = error instanceof KitError && error.code === "forbidden" ? (error.hint ?? "") : "";
    const setting = /server\.(allowed_origins|allowed_hosts)/.exec(hint)?.[1];
    if (setting === undefined || given.size >= mostAdvice) return;
    const advice = setting === "allowed_origins" ? adviceForPage(headers.get("origin")) : adviceForHost(host);
    if (given.has(advice)) return;
    given.add(advice);
    onRefused(advice);
  };
}

function adviceForPage(origin: string | null): string {
  if (origin === null) return "A page of another site was refused: its browser did not say which.";
  if (origin === "null") {
    return "A page without an origin (a file, a sandboxed frame) was refused; it cannot be allowed. Serve the page from an address.";
  }
  return `A page of ${shorten(origin)} was refused. To allow it, set server.allowed_origins = [${JSON.stringify(shorten(origin))}].`;
}

function adviceForHost(host: string | undefined): string {
  const name = shorten(hostNameOf(host) ?? "");
  return `A request for the host name ${name} was refused. If it is this server's name, set server.allowed_hosts = [${JSON.stringify(name)}].`;
}

function shorten(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

/**
 * The network that an address stands for: an IPv4 address for itself, an IPv6 address for its /64, such as
 * `2001:db8:0:1::/64`. A subscriber has at least that much (RFC 6177), and could otherwise come from another
 * address each time. Text that is no address stands for itself.
 */
export function networkOf(address: string): string {
  // A socket for both protocols sees IPv4 as `::ffff:203.0.113.7`.
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, "").replace(/%.*$/, "");
  if (!isIPv6(plain)) return plain;
  const [left = [], right = []] = plain.split("::").map((side) => side.split(":").filter(Boolean));
  // Its last two groups may be written as an IPv4 address.
  const written = left.length + right.length + (plain.includes(".") ? 1 : 0);
  const omitted = Array.from({ length: 8 - written }, () => "0");
  const groups = [...left, ...omitted, ...right].slice(0, 4);
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(":")}::/64`;
}

/** Counts one request of a sender. Throws `too_many_requests` when its allowance is used up. */
type RateLimiter = (who: string) => void;

interface Bucket {
  tokens: number;
  filledAt: number;
}

/** Past this many, the least recently used one is forgotten: it is full again. */
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
