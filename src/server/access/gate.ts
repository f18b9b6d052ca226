import type { RateLimit } from "../../app/config/server-schema.ts";
import { KitError } from "../../base/kit-error.ts";
import type { Principal } from "../../protocol/access.ts";
import type { Access, RequestHead } from "./access.ts";
import { hostNameOf } from "./host.ts";
import { networkOf } from "./network-of.ts";
import { createRateLimiter } from "./rate-limit.ts";

/** Access and allowance together: what every request and every WebSocket passes. */
export interface Gate extends Pick<Access, "crossOriginHeaders"> {
  /** Gives who asks. Throws what `Access.check` throws, and `too_many_requests`. */
  check(head: RequestHead & { readonly remoteAddress: string }): Promise<Principal | undefined>;
  /** Takes one more of somebody's allowance. Throws `too_many_requests`. */
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
        // Whoever tries keys has an allowance, too.
        count(undefined, head.remoteAddress);
        advise(error, head);
        throw error;
      });
      // Whoever watches over the server asks often, and a preflight is the browser's question.
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
