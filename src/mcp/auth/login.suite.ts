import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { modernListener, serveHttp } from "../servers/http-server.suite.ts";
import type { McpServerConfig } from "../servers/mcp-config.ts";
import { toServerSettings } from "../servers/server-settings.ts";
import { type LogInOptions, logIn } from "./log-in.ts";
import {
  browse,
  createOAuthServer,
  type OAuthServer,
  type OAuthServerOptions,
} from "./oauth-server.suite.ts";
import type { ServerLogin } from "./server-login.ts";

export interface Place {
  readonly oauth: OAuthServer;
  readonly config: McpServerConfig;
  readonly logins: string;
  readonly login: ServerLogin;
}

/** Serves an MCP server that asks for a login, and opens the person's login at it; `oauthTable` is that of the configuration. */
export async function serveWithLogin(
  options: OAuthServerOptions = {},
  oauthTable: McpServerConfig["oauth"] = undefined,
): Promise<Place> {
  const oauth = createOAuthServer(modernListener(), options);
  const { url } = await serveHttp(oauth.listener);
  const logins = join(await mkdtemp(join(tmpdir(), "kit-logins-")), "kit", "mcp-logins");
  onTestFinished(() => rm(join(logins, "../.."), { recursive: true }));
  const issuer = new URL(url).origin;
  const config = { url, ...(oauthTable === undefined ? {} : { oauth: { issuer, ...oauthTable } }) };
  return { oauth, config, logins, login: openLogin(config, logins) };
}

export function openLogin(config: McpServerConfig, logins: string): ServerLogin {
  const { endpoint } = toServerSettings("s", config, { root: process.cwd(), env: process.env, logins });
  if (endpoint.kind !== "address" || endpoint.login === undefined) throw new Error("There is no login.");
  return endpoint.login;
}

/** Logs in with a browser that follows the address. */
export async function logInNow(
  login: ServerLogin,
  over: Partial<LogInOptions> = {},
): ReturnType<typeof logIn> {
  const show = (address: URL): void => void browse(address).catch(() => undefined);
  await login.send({ method: "POST" }, (init) => fetch(login.url, init)).catch(() => undefined);
  return await logIn(login, { show, signal: AbortSignal.timeout(20_000), ...over });
}
