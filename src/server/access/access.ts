import { createHash, timingSafeEqual } from "node:crypto";
import { isIP, isIPv6 } from "node:net";
import type { AuthRequest, OAuthConfig, RateLimit } from "../../app/config/server-schema.ts";
import { KitError } from "../../base/kit-error.ts";
import type { AuthResult, Principal } from "../../protocol/access.ts";
import { defaultLimits, type ServerLimits } from "../limits.ts";
import { defaultInstance } from "../service-context.ts";
import { answerInTime } from "./authorize.ts";
import { createTokenCheck, type TokenCheck } from "./bearer-tokens.ts";

/** The access rules of a server. */
export interface AccessOptions {
  /** Requests must carry one of these as `Authorization: Bearer <key>`. */
  readonly apiKeys?: readonly string[];
  /** Returns whether the request is permitted, or its principal. Called if no key matches. */
  readonly auth?: (request: AuthRequest) => AuthResult | Promise<AuthResult>;
  /** The issuer whose tokens `/mcp` accepts beside the keys. */
  readonly oauth?: OAuthConfig;
  /** `Host` names that the server accepts, in addition to those of this machine. */
  readonly allowedHosts?: readonly string[];
  /** Origins of web pages that are allowed to call this server, such as `https://app.example`. */
  readonly allowedOrigins?: readonly string[];
  /** Allows a public address without keys or `auth`. */
  readonly insecure?: boolean;
}

/** The head of a request. */
export interface RequestHead {
  readonly method: string;
  /** As sent, percent-encoded, without the query. */
  readonly path: string;
  readonly headers: Headers;
  /** The `Host` that the request names, or the host of its URL. */
  readonly host: string;
  /** The local address of the connection. */
  readonly localAddress: string;
}

/** The optional parts of a gate. */
export interface GateOptions extends AccessOptions {
  readonly rateLimit?: RateLimit | undefined;
  readonly onRefused?: ((advice: string) => void) | undefined;
  /** Receives why the keys of the tokens' issuer cannot be read, once until they can be read again. */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** Whether a request is for a file of the console: these hold no secrets, need no key and are not counted. */
  readonly isPage?: ((head: RequestHead) => boolean) | undefined;
  /** Whether a path is open to readers without a key. */
  readonly isOpen?: ((path: string) => boolean) | undefined;
  /** Throws for a request that no sender is permitted to make. */
  readonly refuse?: ((head: RequestHead) => void) | undefined;
}

/** Checks the access rules and the rate limit for every request and every WebSocket. */
export class Gate {
  readonly #options: GateOptions;
  readonly #hookTimeoutMs: number;
  readonly #keyOf: ReturnType<typeof createKeyCheck>;
  readonly #needsKey: boolean;
  /** Whether every request needs a key, or must pass the configuration's `auth`. */
  readonly isGuarded: boolean;
  readonly #tokens: TokenCheck | undefined;
  readonly #allowedHosts: ReadonlySet<string>;
  readonly #allowedOrigins: ReadonlySet<string>;
  readonly #limiter: RateLimiter | undefined;
  readonly #advised = new Set<string>();

  constructor(options: GateOptions, { hookTimeoutMs }: Pick<ServerLimits, "hookTimeoutMs"> = defaultLimits) {
    const { apiKeys = [], auth, oauth, allowedHosts = [], allowedOrigins = [], rateLimit } = options;
    this.#options = options;
    this.#hookTimeoutMs = hookTimeoutMs;
    this.#keyOf = createKeyCheck(apiKeys);
    this.#needsKey = apiKeys.length > 0;
    this.isGuarded = this.#needsKey || auth !== undefined || oauth !== undefined;
    this.#tokens = oauth && createTokenCheck(oauth, options.onError);
    this.#allowedHosts = new Set(allowedHosts.map((host) => host.toLowerCase()));
    this.#allowedOrigins = new Set(allowedOrigins.map((origin) => origin.toLowerCase()));
    this.#limiter = rateLimit && createRateLimiter(rateLimit);
  }

  /**
   * Returns the sender; undefined if the server requires no key. Throws `invalid_request`, `unauthorized`, `forbidden`
   * or `too_many_requests`.
   */
  async check(head: RequestHead & { readonly remoteAddress: string }): Promise<Principal | undefined> {
    let principal: Principal | undefined;
    try {
      principal = await this.#senderOf(head);
    } catch (error) {
      // Failed authentication counts against the rate limit.
      this.count(undefined, head.remoteAddress);
      this.#advise(error, head);
      throw error;
    }
    // Health checks, CORS preflights and the console are not counted.
    if (this.#limiter !== undefined && !isHealth(head.path) && head.method !== "OPTIONS")
      if (this.#options.isPage?.(head) !== true) this.count(principal, head.remoteAddress);
    this.#options.refuse?.(head);
    return principal;
  }

  /** Counts one more request of a sender. Throws `too_many_requests`. */
  count(principal: Principal | undefined, remoteAddress: string): void {
    // Any client can send a header that names another address, so requests count for the address of the connection.
    this.#limiter?.(
      principal === undefined ? `address ${networkOf(remoteAddress)}` : `principal ${principal.id}`,
    );
  }

  /** Throws `forbidden` for an address that other machines can reach if the server requires no key. */
  checkBinding(host: string): void {
    if (this.isGuarded || this.#options.insecure === true || isLoopbackAddress(host)) return;
    throw new KitError({
      code: "forbidden",
      message: `kit does not listen on ${host} without keys: every machine that reaches it could use the server.`,
      hint: "Set KIT_API_KEYS or server.auth, or pass --insecure if the network blocks other users.",
    });
  }

  /** Headers that let an allowed foreign page read the reply; undefined for all others. */
  crossOriginHeaders(origin: string | undefined): Readonly<Record<string, string>> | undefined {
    if (origin === undefined || !this.#allowedOrigins.has(origin.toLowerCase())) return undefined;
    return { "access-control-allow-origin": origin, vary: "origin" };
  }

  async #senderOf(head: RequestHead): Promise<Principal | undefined> {
    const { method, path, headers, host, localAddress } = head;
    checkHost(host, { localAddress, allowedHosts: this.#allowedHosts, guarded: this.isGuarded });
    checkOrigin(headers, host, this.#allowedOrigins);
    if (!this.isGuarded || isHealth(path) || method === "OPTIONS") return undefined;
    if (this.#options.isPage?.(head) === true) return undefined;
    // Senders of webhooks have no key: they sign their requests, and the route checks the signature.
    if (method === "POST" && /^\/webhooks\/[^/]+$/.test(path)) return undefined;
    // Clients without a token learn here where to get one.
    if (method === "GET" && /^\/\.well-known\/oauth-protected-resource(?:\/mcp)?$/.test(path))
      return undefined;
    // Browsers come back from an authorization server without a key, and the route checks their cookie.
    if (method === "GET" && /^\/logins\/[^/]+\/callback$/.test(path)) return undefined;
    const authorization = headers.get("authorization") ?? undefined;
    if (authorization === undefined && method === "GET" && this.#options.isOpen?.(path) === true)
      return undefined;
    const key = this.#needsKey ? this.#keyOf(authorization) : undefined;
    const { auth } = this.#options;
    // A token is for the endpoint that its client was shown, and opens nothing else.
    const tokens = path === "/mcp" && key === undefined ? this.#tokens : undefined;
    let byKey: Principal | undefined = key === undefined ? undefined : { id: key };
    let refusal: KitError | undefined;
    try {
      byKey ??= await tokens?.check(authorization);
    } catch (error) {
      // A key that only `auth` knows is no token.
      if (this.#needsKey || auth === undefined || !(error instanceof KitError)) throw error;
      refusal = error;
    }
    if ((this.#needsKey || auth === undefined) && byKey === undefined) throw unauthorized();
    if (auth === undefined) return byKey;
    const result = await answerInTime(auth({ method, path, headers, ...targetOf(path) }), {
      name: "server.auth",
      timeoutMs: this.#hookTimeoutMs,
    });
    if (result === true) return byKey;
    if (isPrincipal(result)) return result;
    throw this.#needsKey
      ? new KitError({ code: "forbidden", message: "server.auth refused this request." })
      : (refusal ?? unauthorized());
  }

  /** Reports once for each page and host name the setting that allows it. */
  #advise(error: unknown, { headers, host }: RequestHead): void {
    const hint = error instanceof KitError && error.code === "forbidden" ? (error.hint ?? "") : "";
    const setting = /server\.(allowed_origins|allowed_hosts)/.exec(hint)?.[1];
    if (setting === undefined || this.#advised.size >= mostAdvice) return;
    const advice = setting === "allowed_origins" ? adviceForPage(headers.get("origin")) : adviceForHost(host);
    if (this.#advised.has(advice)) return;
    this.#advised.add(advice);
    this.#options.onRefused?.(advice);
  }
}

/** How many pages and names are remembered: a client can invent any number. */
const mostAdvice = 100;

/** Returns the agent and the instance that a path names. The route later refuses a path that cannot be decoded. */
function targetOf(path: string): Pick<AuthRequest, "agent" | "instance"> {
  if (path.startsWith("/prompt/"))
    return { agent: defaultInstance.agent, instance: defaultInstance.instance_id };
  const [, agent, instance] = /^\/agents\/([^/]+)(?:\/([^/]+))?/.exec(path) ?? [];
  try {
    return {
      ...(agent === undefined ? {} : { agent: decodeURIComponent(agent) }),
      ...(instance === undefined ? {} : { instance: decodeURIComponent(instance) }),
    };
  } catch {
    return {};
  }
}

// The configuration can be plain JavaScript, so check what `auth` returns.
function isPrincipal(result: unknown): result is Principal {
  return typeof result === "object" && result !== null && "id" in result && typeof result.id === "string";
}

function unauthorized(): KitError {
  return new KitError({ code: "unauthorized", message: "A valid API key is needed." });
}

/**
 * Finds the key that a request's `Authorization` header holds. Returns an id of the key that reveals nothing about it,
 * or undefined.
 *
 * It compares digests of equal length in constant time, and always all of them, so that the time of the reply reveals
 * nothing about a key.
 */
export function createKeyCheck(
  keys: readonly string[],
): (authorization: string | undefined) => string | undefined {
  const digests = keys.map((key) => {
    const digest = digestOf(key);
    return { digest, id: `key_${digest.toString("hex").slice(0, 12)}` };
  });
  return (authorization) => {
    const token = /^Bearer +([^\s]+) *$/i.exec(authorization ?? "")?.[1];
    if (token === undefined) return undefined;
    const tokenDigest = digestOf(token);
    let matchingId: string | undefined;
    for (const { digest, id } of digests) {
      if (timingSafeEqual(digest, tokenDigest)) matchingId = id;
    }
    return matchingId;
  };
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/**
 * Throws `forbidden` for a request of a foreign web page (cross-site request forgery). Programs send no `Origin` and
 * pass, and so do links to kit, which browsers mark as navigation.
 */
export function checkOrigin(
  headers: Pick<Headers, "get">,
  host: string | undefined,
  allowedOrigins: ReadonlySet<string>,
): void {
  const origin = headers.get("origin");
  if (origin !== null) {
    if (allowedOrigins.has(origin.toLowerCase()) || isSameOrigin(origin, host)) return;
  } else if (headers.get("sec-fetch-site") !== "cross-site" || headers.get("sec-fetch-mode") === "navigate") {
    return;
  }
  throw new KitError({
    code: "forbidden",
    message: "Requests from other web pages are not allowed.",
    hint: "Add the page's origin to server.allowed_origins in the configuration.",
  });
}

// A proxy in front of kit can use TLS, so both schemes match the host of the request.
function isSameOrigin(origin: string, host: string | undefined): boolean {
  if (host === undefined) return false;
  const lowered = origin.toLowerCase();
  return lowered === `http://${host.toLowerCase()}` || lowered === `https://${host.toLowerCase()}`;
}

/** The rules for accepted `Host` names. */
export interface HostRules {
  /** The local address of the connection. */
  readonly localAddress: string;
  /** Configured names, without port, in lower case. */
  readonly allowedHosts: ReadonlySet<string>;
  /** Whether every request must have a key or pass the configuration's `auth`. */
  readonly guarded: boolean;
}

/**
 * Throws `invalid_request` or `forbidden` for a `Host` that is not this server's. This prevents DNS rebinding: a foreign
 * page whose name resolves to this machine still sends its own name.
 *
 * A configured name and a loopback name are accepted, and on a public address also an IP address, which cannot be
 * rebound. A guarded server on a public address without configured names accepts any name, because a browser attaches
 * no key on its own.
 */
export function checkHost(header: string | undefined, rules: HostRules): void {
  const name = hostNameOf(header);
  if (name === undefined) {
    throw new KitError({ code: "invalid_request", message: "The Host header is missing or malformed." });
  }
  if (name === "[::1]" || isLoopbackAddress(name) || rules.allowedHosts.has(name)) return;
  if (!isLoopbackAddress(rules.localAddress)) {
    if (isIP(name.replace(/^\[|\]$/g, "")) !== 0) return;
    if (rules.guarded && rules.allowedHosts.size === 0) return;
  }
  throw new KitError({
    code: "forbidden",
    message: "This server does not answer to that Host name.",
    hint: "Add the name to server.allowed_hosts in the configuration.",
  });
}

/** Returns the name in a `Host` header in lower case, without its port. */
export function hostNameOf(header: string | undefined): string | undefined {
  return /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?$/.exec(header?.toLowerCase() ?? "")?.[1];
}

/** Whether only this machine can reach a server that is bound to the address. */
export function isLoopbackAddress(address: string): boolean {
  const plain = address.toLowerCase().replace(/^::ffff:/, "");
  return plain === "localhost" || plain === "::1" || (isIP(plain) === 4 && plain.startsWith("127."));
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
 * Returns the network for which requests of an address count: an IPv4 address itself, or the /64 of an IPv6 address, such
 * as `2001:db8:0:1::/64`. A subscriber has at least a /64 (RFC 6177) and could otherwise use another address for each
 * request. Returns text that is not an address unchanged.
 */
export function networkOf(address: string): string {
  // A socket for both protocols reports an IPv4 address as `::ffff:203.0.113.7`.
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, "").replace(/%.*$/, "");
  if (!isIPv6(plain)) return plain;
  const [left = [], right = []] = plain.split("::").map((side) => side.split(":").filter(Boolean));
  // The last two groups can be written as an IPv4 address.
  const written = left.length + right.length + (plain.includes(".") ? 1 : 0);
  const omitted = Array.from({ length: 8 - written }, () => "0");
  const groups = [...left, ...omitted, ...right].slice(0, 4);
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(":")}::/64`;
}

/** Counts one request of a sender. Throws `too_many_requests` if its allowance is used up. */
type RateLimiter = (client: string) => void;

interface Bucket {
  tokens: number;
  filledAt: number;
}

/** Beyond this many senders, the least recently used one is forgotten, and its bucket is full again. */
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
  return (client) => {
    const at = now();
    const bucket = buckets.get(client) ?? { tokens: burst, filledAt: at };
    bucket.tokens = Math.min(burst, bucket.tokens + (at - bucket.filledAt) * perMs);
    bucket.filledAt = at;
    buckets.delete(client);
    buckets.set(client, bucket);
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

function isHealth(path: string): boolean {
  return path === "/health" || path === "/health/live";
}
