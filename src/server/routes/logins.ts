import { KitError } from "../../base/kit-error.ts";
import { ServerFailure } from "../../mcp/servers/server-failure.ts";
import { errorCodes } from "../../protocol/error-code.ts";
import { loginRoutes } from "../../protocol/routes/mcp-routes.ts";
import { hostNameOf } from "../access/access.ts";
import { htmlReply, jsonParts } from "../reply.ts";
import { bindRoutes, type Handlers, type Route, type RouteRequest } from "../route.ts";
import type { ServiceContext } from "../service-context.ts";

/** Where browsers reach the server. */
export interface Site {
  readonly publicUrl: string | undefined;
  /** The port on which the server listens; `undefined` if it does not. */
  readonly port: () => number | undefined;
}

/** Logins of persons at MCP servers: the console begins them, and the authorization server sends the browser back. */
export function bindLoginRoutes(
  { service, authorization, masked }: ServiceContext,
  site: Site,
): readonly Route[] {
  const handlers: Handlers<typeof loginRoutes> = {
    async "POST /logins/{server}"({ principal, action, segment, header }) {
      const server = segment("server");
      await authorization.check({ principal, action, mcp_server: server });
      const redirect = callbackAt(addressFor(site, header), server);
      const begun = await service.logins?.begin(server, redirect.href).catch(toLoginError(server));
      if (begun === undefined)
        throw new KitError({
          code: "not_found",
          message: `There is no MCP server ${JSON.stringify(server)} at which a person logs in.`,
        });
      const { address, secret, state, until } = begun;
      const seconds = Math.floor((until - Date.now()) / 1_000);
      const headers = { "set-cookie": loginCookie(redirect, state).write(secret, seconds) };
      return replyWith(headers, { url: address.href, expires_at: new Date(until).toISOString() });
    },
    async "GET /logins/{server}/callback"({ segment, accept, header, url }) {
      const server = segment("server");
      const isPage = accept.includes("text/html");
      const answer = new URL(url).searchParams;
      const base = toBase(site.publicUrl ?? "http://localhost");
      const cookie = loginCookie(callbackAt(base, server), answer.get("state") ?? "");
      const secret = cookie.read(header("cookie"));
      // With its answer, a login is over.
      const headers = secret === undefined ? {} : { "set-cookie": cookie.write("", 0) };
      try {
        const browser = secret === undefined ? undefined : { secret, answer };
        const done = browser && (await service.logins?.finish(server, browser).catch(toLoginError(server)));
        if (done === undefined) throw noOpenLogin();
        const text = "Agents can use it from now on.";
        if (isPage) return page(`Logged in at ${server}`, { text, status: 200, headers });
        const { issuer, scope } = done;
        return replyWith(headers, masked({ server, issuer, ...(scope === undefined ? {} : { scope }) }));
      } catch (error) {
        if (!isPage || !(error instanceof KitError)) throw error;
        const { status } = errorCodes[error.code as keyof typeof errorCodes];
        // Without a login, the name is a text of whoever sent the person here.
        const title = error.code === "not_found" ? "Not logged in" : `Not logged in at ${server}`;
        return page(title, { text: masked(error.message), status, headers });
      }
    },
  };
  return bindRoutes(loginRoutes, handlers);
}

/**
 * The address of the server, which the authorization server gets. `Host` only chooses between names of this machine: any other one
 * could be the sender's, and lead the answer to the sender.
 */
function addressFor({ publicUrl, port }: Site, header: RouteRequest["header"]): URL {
  const name = hostNameOf(header("host")) ?? "";
  const number = port();
  const own = ownNames.has(name) && number !== undefined ? `http://${name}:${number}` : undefined;
  const address = publicUrl ?? own;
  const origin = header("origin");
  if (address === undefined)
    throw new KitError({
      code: "invalid_request",
      message:
        "This server does not know the address to which browsers come back. Set server.public_url in its configuration.",
    });
  const base = toBase(address);
  // The cookie would belong to another host than the one that the browser comes back to.
  if (origin !== undefined && origin !== base.origin)
    throw new KitError({
      code: "invalid_request",
      message: `The browser would come back to ${base.href}: begin the login there, or set server.public_url.`,
    });
  return base;
}

const ownNames: ReadonlySet<string> = new Set(["127.0.0.1", "localhost", "[::1]"]);

function toBase(address: string): URL {
  return new URL(address.endsWith("/") ? address : `${address}/`);
}

/** The address at which a login at an MCP server ends. */
function callbackAt(base: URL, server: string): URL {
  return new URL(`logins/${encodeURIComponent(server)}/callback`, base);
}

interface LoginCookie {
  /** The value in the header of a request. */
  read(header: string | undefined): string | undefined;
  /** The header of a reply; zero seconds remove the cookie. */
  write(value: string, seconds: number): string;
}

/**
 * The cookie of one login. Browsers send it to every port of a host, so its name is of the login: a server of another project replaces
 * nothing. Over https, the prefix keeps servers without https from setting it.
 */
function loginCookie({ protocol, pathname }: URL, state: string): LoginCookie {
  const isSecure = protocol === "https:";
  const name = `${isSecure ? "__Secure-" : ""}kit_login_${state.slice(0, 16)}`;
  const attributes = `HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;
  return {
    read: (header = "") => {
      const cookies = header.split(";").map((cookie) => cookie.trim());
      return cookies.find((cookie) => cookie.startsWith(`${name}=`))?.slice(name.length + 1);
    },
    write: (value, seconds) => `${name}=${value}; Path=${pathname}; Max-Age=${seconds}; ${attributes}`,
  };
}

function replyWith(headers: Readonly<Record<string, string>>, value: unknown): Response {
  const { body, ...rest } = jsonParts(value, { status: 200, headers });
  return new Response(body, rest);
}

function noOpenLogin(): KitError {
  return new KitError({
    code: "not_found",
    message:
      "This browser has no open login: it is finished, took longer than ten minutes, or began in another browser. Begin again.",
  });
}

const policy =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** The page at which a login ends. It has the colours of the console. */
function page(
  title: string,
  {
    text,
    status,
    headers,
  }: {
    readonly text: string;
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
  },
): Response {
  const isDone = status < 400;
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)} – kit</title>
<style>
  body { margin: 0; min-height: 100dvh; display: grid; place-items: center; font: 16px/1.5 system-ui, sans-serif; }
  main { box-sizing: border-box; width: min(32rem, 100%); padding: 2rem; overflow-wrap: anywhere; }
  h1 { margin: 0 0 .5rem; font-size: 1.25rem; }
  p { margin: 0 0 .5rem; }
</style>
<main>
  <h1>${escapeHtml(title)}</h1>
  <p>${escapeHtml(text)}</p>
  <p>${isDone ? "You can close this page." : "You can close this page, and log in again in kit’s console."}</p>
</main>
</html>
`;
  return htmlReply(html, { policy, status, headers });
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

/** Converts the failure of a login for its caller; other errors are thrown as they are. */
function toLoginError(server: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof ServerFailure)) throw error;
    throw new KitError({
      code: error.outcome === "refused" ? "forbidden" : "unavailable",
      message: `kit could not log in at ${server}. ${error.message}`,
    });
  };
}
