import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import type { AuthRequest } from "../../app/config/kit-config.ts";
import { KitError } from "../../base/kit-error.ts";
import { createKeyCheck } from "./api-keys.ts";
import { checkHost, isLoopbackAddress } from "./host.ts";
import { checkOrigin } from "./origin.ts";

/** Who may use a server. */
export interface AccessOptions {
  /** Requests must carry one of these as `Authorization: Bearer <key>`. */
  readonly apiKeys?: readonly string[];
  /** Says whether a request may pass; asked after the keys. */
  readonly auth?: (request: AuthRequest) => boolean | Promise<boolean>;
  /** `Host` names to answer to besides the machine's own. */
  readonly allowedHosts?: readonly string[];
  /** Origins of web pages that may call this server, such as `https://app.example`. */
  readonly allowedOrigins?: readonly string[];
  /** Allows a public address without keys or `auth`. */
  readonly insecure?: boolean;
}

/** The gate in front of every route. */
export interface Access {
  /** Throws `invalid_request`, `unauthorized` or `forbidden`. */
  check(context: AccessContext): Promise<void>;
  /** Refuses to bind an address that others can reach while nobody is asked for a key. */
  checkBinding(host: string): void;
  /** Headers that let an allowed foreign page read the reply; undefined for all others. */
  crossOriginHeaders(context: AccessContext): Readonly<Record<string, string>> | undefined;
}

type AccessContext = Context<{ Bindings: HttpBindings }>;

export function createAccess(options: AccessOptions): Access {
  const hasKey = createKeyCheck(options.apiKeys ?? []);
  const needsKey = (options.apiKeys?.length ?? 0) > 0;
  const guarded = needsKey || options.auth !== undefined;
  const allowedHosts = new Set(options.allowedHosts?.map((host) => host.toLowerCase()));
  const allowedOrigins = new Set(options.allowedOrigins?.map((origin) => origin.toLowerCase()));
  return {
    async check({ req, env }) {
      const host = req.header("host") ?? new URL(req.url).host;
      const localAddress = env?.incoming?.socket.localAddress ?? "127.0.0.1";
      checkHost(host, { localAddress, allowedHosts, guarded });
      const origin = req.header("origin");
      const [fetchSite, fetchMode] = [req.header("sec-fetch-site"), req.header("sec-fetch-mode")];
      checkOrigin({ host, origin, fetchSite, fetchMode }, allowedOrigins);
      if (!guarded || req.path === "/health" || req.method === "OPTIONS") return;
      if (needsKey && !hasKey(req.header("authorization"))) throw unauthorized();
      const request = { method: req.method, path: req.path, headers: req.raw.headers };
      if (options.auth === undefined || (await options.auth(request)) === true) return;
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
    crossOriginHeaders({ req }) {
      const origin = req.header("origin");
      if (origin === undefined || !allowedOrigins.has(origin.toLowerCase())) return undefined;
      return { "access-control-allow-origin": origin, vary: "origin" };
    },
  };
}

function unauthorized(): KitError {
  return new KitError({ code: "unauthorized", message: "A valid API key is needed." });
}
