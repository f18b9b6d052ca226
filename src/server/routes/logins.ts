import { KitError } from "../../base/kit-error.ts";
import type { LoggedIn } from "../../mcp/auth/log-in.ts";
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
  const finish = async (
    server: string,
    { header, url }: Pick<RouteRequest, "header" | "url">,
  ): Promise<LoggedIn> => {
    const secret = cookieOf(header("cookie"), cookieName(server));
    const browser = secret === undefined ? undefined : { secret, answer: new URL(url).searchParams };
    const done = browser && (await service.logins?.finish(server, browser).catch(toLoginError(server)));
    if (done !== undefined) return done;
    throw new KitError({
      code: "not_found",
      message:
        "This browser has no open login: it is finished, took longer than ten minutes, or began in another browser. Begin again.",
    });
  };
  const handlers: Handlers<typeof loginRoutes> = {
    async "POST /logins/{server}"({ principal, action, segment, header }) {
      const server = segment("server");
      await authorization.check({ principal, action, mcp_server: server });
      const redirect = new URL(`logins/${encodeURIComponent(server)}/callback`, addressFor(site, header));
      const begun = await service.logins?.begin(server, redirect.href).catch(toLoginError(server));
      if (begun === undefined)
        throw new KitError({
          code: "not_found",
          message: `There is no MCP server ${JSON.stringify(server)} at which a person logs in.`,
        });
      const { address, secret, until } = begun;
      const seconds = Math.floor((until - Date.now()) / 1_000);
      const attributes = `Path=${redirect.pathname}; Max-Age=${seconds}; HttpOnly; SameSite=Lax`;
      const cookie = `${cookieName(server)}=${secret}; ${attributes}`;
      const { body, ...rest } = jsonParts(
        { url: address.href, expires_at: new Date(until).toISOString() },
        {
          status: 200,
          headers: { "set-cookie": redirect.protocol === "https:" ? `${cookie}; Secure` : cookie },
        },
      );
      return new Response(body, rest);
    },
    async "GET /logins/{server}/callback"({ segment, accept, ...request }) {
      const server = segment("server");
      const isPage = accept.includes("text/html");
      try {
        const { issuer, scope } = await finish(server, request);
        const done = masked({ server, issuer, ...(scope === undefined ? {} : { scope }) });
        return isPage ? page(`Logged in at ${server}`, { text: "Agents can use it from now on." }) : done;
      } catch (error) {
        if (!isPage || !(error instanceof KitError)) throw error;
        const { status } = errorCodes[error.code as keyof typeof errorCodes];
        return page(`Not logged in at ${server}`, { text: masked(error.message), status });
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
  const base = new URL(address.endsWith("/") ? address : `${address}/`);
  // The cookie would belong to another host than the one that the browser comes back to.
  if (origin !== undefined && origin !== base.origin)
    throw new KitError({
      code: "invalid_request",
      message: `The browser would come back to ${base.href}: begin the login there, or set server.public_url.`,
    });
  return base;
}

const ownNames: ReadonlySet<string> = new Set(["127.0.0.1", "localhost", "[::1]"]);

function cookieName(server: string): string {
  return `kit_login_${server}`;
}

function cookieOf(header: string | undefined, name: string): string | undefined {
  const cookies = (header ?? "").split(";").map((cookie) => cookie.trim());
  return cookies.find((cookie) => cookie.startsWith(`${name}=`))?.slice(name.length + 1);
}

const policy =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** The page at which a login ends. It has the colours of the console. */
function page(
  title: string,
  { text, status = 200 }: { readonly text: string; readonly status?: number },
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
  return htmlReply(html, { policy, status });
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
