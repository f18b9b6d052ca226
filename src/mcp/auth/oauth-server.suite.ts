import { createHash, randomUUID } from "node:crypto";
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";

/** The behaviour of an authorization server in a test. */
export interface OAuthServerOptions {
  /** Seconds until an access token ends; default 3,600. `undefined` in `answer` leaves it out. */
  readonly lifetime?: number;
  /** Whether tokens can be revoked. */
  readonly revokes?: boolean;
  /** Whether the end of an access token is kept from the client. */
  readonly hidesLifetime?: boolean;
  /** The scope that `tools/call` needs. */
  readonly needs?: string;
  /** Clients that are registered already: ids with secrets. */
  readonly clients?: Readonly<Record<string, string>>;
  /** Changes an answer, or answers in its place with true. */
  readonly meddle?: (
    path: string,
    value: Record<string, unknown>,
    reply: ServerResponse,
  ) => boolean | undefined;
}

/** An MCP server with its own authorization server, which rotates refresh tokens and ends a login whose old refresh token comes again. */
export interface OAuthServer {
  readonly listener: RequestListener;
  /** The requests by path, and what happened to refresh tokens. */
  readonly counts: Record<string, number>;
  /** The parameters of the last authorization and token requests. */
  readonly last: { authorize?: URLSearchParams; token?: URLSearchParams; basic?: string | undefined };
  /** The parameters of the requests to revoke tokens. */
  readonly revoked: URLSearchParams[];
  /** Whether an old refresh token has come again. */
  isDead: boolean;
  /** Ends all access tokens. */
  endAccess(): void;
}

interface Family {
  refresh: string;
  access: string;
  until: number;
  scope: string;
}

/** Puts an authorization server around an MCP server at `/mcp`. */
export function createOAuthServer(mcp: RequestListener, options: OAuthServerOptions = {}): OAuthServer {
  const { lifetime = 3_600, hidesLifetime = false, meddle } = options;
  const registered = new Map(Object.entries(options.clients ?? {}));
  const codes = new Map<string, URLSearchParams>();
  const families: Family[] = [];
  const answer = (
    { reply, path }: { readonly reply: ServerResponse; readonly path: string },
    value: Record<string, unknown>,
    status = 200,
  ): void => {
    if (meddle?.(path, value, reply) === true) return;
    reply.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
  };
  const issue = (family: Family, withRefresh: boolean): Record<string, unknown> => {
    family.access = `access-${randomUUID()}`;
    family.refresh = `refresh-${randomUUID()}`;
    family.until = Date.now() + lifetime * 1000;
    return {
      ...{ access_token: family.access, token_type: "Bearer", scope: family.scope },
      ...(hidesLifetime ? {} : { expires_in: lifetime }),
      ...(withRefresh ? { refresh_token: family.refresh } : {}),
    };
  };
  const server: OAuthServer = {
    counts: {},
    last: {},
    revoked: [],
    isDead: false,
    endAccess: () => {
      for (const family of families) family.until = 0;
    },
    listener: (request, reply) => void handle(request, reply),
  };
  async function handle(request: IncomingMessage, reply: ServerResponse): Promise<void> {
    const origin = `http://${request.headers.host}`;
    const { pathname: path, searchParams } = new URL(request.url ?? "", origin);
    const at = { reply, path };
    server.counts[path] = (server.counts[path] ?? 0) + 1;
    const refuse = (error: string, status = 400): void =>
      answer(at, { error, error_description: `It was ${server.last.token}` }, status);
    switch (path) {
      case "/.well-known/oauth-protected-resource/mcp":
        return answer(at, { resource: `${origin}/mcp`, authorization_servers: [origin] });
      case "/.well-known/oauth-authorization-server":
        return answer(at, {
          issuer: origin,
          authorization_endpoint: `${origin}/authorize`,
          token_endpoint: `${origin}/token`,
          registration_endpoint: `${origin}/register`,
          ...(options.revokes === true ? { revocation_endpoint: `${origin}/revoke` } : {}),
          response_types_supported: ["code"],
          code_challenge_methods_supported: ["S256"],
          authorization_response_iss_parameter_supported: true,
        });
      case "/register": {
        const metadata = JSON.parse(await readBody(request));
        const id = `client-${registered.size}`;
        registered.set(id, "");
        return answer(at, { ...metadata, client_id: id, token_endpoint_auth_method: "none" }, 201);
      }
      case "/authorize": {
        server.last.authorize = searchParams;
        const code = randomUUID();
        codes.set(code, searchParams);
        const back = new URL(searchParams.get("redirect_uri") ?? "");
        const given = { code, state: searchParams.get("state") ?? "", iss: origin };
        meddle?.(path, given, reply);
        back.search = new URLSearchParams(given).toString();
        reply.writeHead(302, { location: back.href }).end();
        return;
      }
      case "/token": {
        const body = new URLSearchParams(await readBody(request));
        Object.assign(server.last, { token: body, basic: request.headers.authorization });
        if (body.get("grant_type") === "client_credentials") {
          const [id = "", secret] = Buffer.from(request.headers.authorization?.slice(6) ?? "", "base64")
            .toString()
            .split(":");
          if (secret === undefined || registered.get(id) !== secret) return refuse("invalid_client", 401);
          const family = { refresh: "", access: "", until: 0, scope: body.get("scope") ?? "" };
          families.push(family);
          return answer(at, issue(family, false));
        }
        if (body.get("grant_type") === "authorization_code") {
          const asked = codes.get(body.get("code") ?? "");
          codes.delete(body.get("code") ?? "");
          const challenge = createHash("sha256")
            .update(body.get("code_verifier") ?? "")
            .digest("base64url");
          if (asked?.get("code_challenge") !== challenge || asked.get("code_challenge_method") !== "S256")
            return refuse("invalid_grant");
          const family = { refresh: "", access: "", until: 0, scope: asked.get("scope") ?? "" };
          families.push(family);
          return answer(at, issue(family, true));
        }
        const family = families.find(({ refresh }) => refresh === body.get("refresh_token"));
        if (family === undefined) {
          server.isDead = true;
          families.length = 0;
          return refuse("invalid_grant");
        }
        server.counts.refreshes = (server.counts.refreshes ?? 0) + 1;
        return answer(at, issue(family, true));
      }
      case "/revoke": {
        const body = new URLSearchParams(await readBody(request));
        server.revoked.push(body);
        server.last.basic = request.headers.authorization;
        const token = body.get("token");
        for (const family of families)
          if (family.refresh === token) Object.assign(family, { refresh: "", until: 0 });
        return answer(at, {});
      }
      default: {
        const family = families.find(({ access }) => request.headers.authorization === `Bearer ${access}`);
        const metadata = `resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`;
        if (family === undefined || family.until < Date.now())
          return void reply.writeHead(401, { "www-authenticate": `Bearer ${metadata}, scope="read"` }).end();
        const isCall = request.headers["mcp-method"] === "tools/call";
        if (isCall && options.needs !== undefined && !family.scope.split(" ").includes(options.needs)) {
          const challenge = `Bearer error="insufficient_scope", scope="${options.needs}", ${metadata}`;
          return void reply.writeHead(403, { "www-authenticate": challenge }).end();
        }
        mcp(request, reply);
      }
    }
  }
  return server;
}

async function readBody(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const chunk of request) body += chunk;
  return body;
}

/** Opens the address of a login as a browser does: it follows the redirect of the authorization server. */
export async function browse(address: URL): Promise<Response> {
  const { headers } = await fetch(address, { redirect: "manual" });
  return await fetch(headers.get("location") ?? "");
}
