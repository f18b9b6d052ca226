import type { AuthRequest } from "../../app/config/server-schema.ts";
import { KitError } from "../../base/kit-error.ts";
import type { AuthResult, Principal } from "../../protocol/access.ts";
import { defaultLimits, type ServerLimits } from "../limits.ts";
import { defaultInstance } from "../reachable.ts";
import { answerInTime } from "./answer-in-time.ts";
import { createKeyCheck } from "./api-keys.ts";
import { checkHost, isLoopbackAddress } from "./host.ts";
import { checkOrigin } from "./origin.ts";

/** The access rules of a server. */
export interface AccessOptions {
  /** Requests must carry one of these as `Authorization: Bearer <key>`. */
  readonly apiKeys?: readonly string[];
  /** Says whether a request may pass, or who it is that passes; asked after the keys. */
  readonly auth?: (request: AuthRequest) => AuthResult | Promise<AuthResult>;
  /** `Host` names to answer to besides the machine's own. */
  readonly allowedHosts?: readonly string[];
  /** Origins of web pages that may call this server, such as `https://app.example`. */
  readonly allowedOrigins?: readonly string[];
  /** Allows a public address without keys or `auth`. */
  readonly insecure?: boolean;
}

/** A request before anything of it but its head was read. */
export interface RequestHead {
  readonly method: string;
  /** As sent, percent-encoded, without the query. */
  readonly path: string;
  readonly headers: Headers;
  /** The `Host` that the request names, or the host of its URL. */
  readonly host: string;
  /** The address of this machine that the connection came in on. */
  readonly localAddress: string;
}

/** The gate in front of every route. */
export interface Access {
  /**
   * Gives the sender; undefined where no key is asked for. Throws `invalid_request`,
   * `unauthorized` or `forbidden`.
   */
  check(head: RequestHead): Promise<Principal | undefined>;
  /** Refuses to bind an address that others can reach while no key is asked for. */
  checkBinding(host: string): void;
  /** Headers that let an allowed foreign page read the reply; undefined for all others. */
  crossOriginHeaders(origin: string | undefined): Readonly<Record<string, string>> | undefined;
}

export function createAccess(
  options: AccessOptions,
  { hookTimeoutMs }: Pick<ServerLimits, "hookTimeoutMs"> = defaultLimits,
): Access {
  const { auth } = options;
  const keyOf = createKeyCheck(options.apiKeys ?? []);
  const needsKey = (options.apiKeys?.length ?? 0) > 0;
  const guarded = needsKey || auth !== undefined;
  const allowedHosts = new Set(options.allowedHosts?.map((host) => host.toLowerCase()));
  const allowedOrigins = new Set(options.allowedOrigins?.map((origin) => origin.toLowerCase()));
  return {
    async check({ method, path, headers, host, localAddress }) {
      checkHost(host, { localAddress, allowedHosts, guarded });
      const origin = headers.get("origin") ?? undefined;
      const fetchSite = headers.get("sec-fetch-site") ?? undefined;
      const fetchMode = headers.get("sec-fetch-mode") ?? undefined;
      checkOrigin({ host, origin, fetchSite, fetchMode }, allowedOrigins);
      if (!guarded || path === "/health" || method === "OPTIONS") return undefined;
      // Senders of webhooks have no key: they sign, and the route refuses what is not signed.
      if (method === "POST" && /^\/webhooks\/[^/]+$/.test(path)) return undefined;
      const key = needsKey ? keyOf(headers.get("authorization") ?? undefined) : undefined;
      if (needsKey && key === undefined) throw unauthorized();
      const byKey = key === undefined ? undefined : { id: key };
      if (auth === undefined) return byKey;
      const result = await answerInTime(auth({ method, path, headers, ...targetOf(path) }), {
        name: "server.auth",
        timeoutMs: hookTimeoutMs,
      });
      if (result === true) return byKey;
      if (isPrincipal(result)) return result;
      throw needsKey ? new KitError({ code: "forbidden", message: "This is not allowed." }) : unauthorized();
    },
    checkBinding(host) {
      if (guarded || options.insecure === true || isLoopbackAddress(host)) return;
      throw new KitError({
        code: "forbidden",
        message: `Refusing to listen on ${host} while anybody may use the server.`,
        hint: "Set KIT_API_KEYS or server.auth, or pass --insecure if the network keeps others out.",
      });
    },
    crossOriginHeaders(origin) {
      if (origin === undefined || !allowedOrigins.has(origin.toLowerCase())) return undefined;
      return { "access-control-allow-origin": origin, vary: "origin" };
    },
  };
}

/** The agent and the instance that a path is about; what cannot be decoded is refused later. */
function targetOf(path: string): Pick<AuthRequest, "agent" | "instance_id"> {
  if (path.startsWith("/prompt/")) return defaultInstance;
  const [, agent, instance] = /^\/agents\/([^/]+)(?:\/([^/]+))?/.exec(path) ?? [];
  try {
    return {
      ...(agent === undefined ? {} : { agent: decodeURIComponent(agent) }),
      ...(instance === undefined ? {} : { instance_id: decodeURIComponent(instance) }),
    };
  } catch {
    return {};
  }
}

// The configuration may be plain JavaScript: what `auth` returns is looked at.
function isPrincipal(result: unknown): result is Principal {
  return typeof result === "object" && result !== null && "id" in result && typeof result.id === "string";
}

function unauthorized(): KitError {
  return new KitError({ code: "unauthorized", message: "A valid API key is needed." });
}
