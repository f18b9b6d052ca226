import { loadSdk } from "../servers/load-mcp-sdk.ts";
import { ServerFailure } from "../servers/server-failure.ts";
import { toLoginFailure } from "./login-failure.ts";
import type { LoginRecord } from "./login-file.ts";
import { issuerOf, type ServerLogin } from "./server-login.ts";

/** The result of a logout. */
export interface LoggedOut {
  /** Whether there was a login. */
  readonly removed: boolean;
  /** Whether the authorization server has ended the tokens, too; absent without a login. */
  readonly revoked?: boolean;
  /** Why it has not, as a sentence. */
  readonly problem?: string;
}

/**
 * Removes the login that is kept, and then revokes its tokens (RFC 7009) if their authorization server takes that. A failure there is
 * returned: the login is removed all the same.
 */
export async function logOut(login: ServerLogin): Promise<LoggedOut> {
  const before = await login.file.change(async (current, write) => {
    write(undefined);
    return current;
  });
  if (before.tokens === undefined) return { removed: false };
  try {
    await revoke(login, before);
    return { removed: true, revoked: true };
  } catch (error) {
    const { message } = error instanceof ServerFailure ? error : toLoginFailure(await loadSdk(), error);
    return { removed: true, revoked: false, problem: message };
  }
}

interface Revocations {
  readonly revocation_endpoint?: string | undefined;
  readonly revocation_endpoint_auth_methods_supported?: readonly string[] | undefined;
}

async function revoke(login: ServerLogin, { tokens, discovery, clients = {} }: LoginRecord): Promise<void> {
  if (tokens === undefined || discovery === undefined || issuerOf(discovery) !== tokens.issuer)
    throw noRevocation();
  const { issuer } = tokens;
  // Metadata of OpenID can have both, too, although its type does not.
  const { revocation_endpoint: address, revocation_endpoint_auth_methods_supported: methods }: Revocations =
    (discovery.authorizationServerMetadata as Revocations | undefined) ?? {};
  const endpoint = URL.parse(address ?? "");
  if (endpoint === null) throw noRevocation();
  const sdk = await loadSdk();
  const client = login.configured(issuer) ?? clients[issuer];
  let refusal: Error | undefined;
  // The refresh token first: with it, most authorization servers end the access tokens, too. Some take only one of the two.
  for (const kind of ["refresh_token", "access_token"] as const) {
    const token = tokens[kind];
    if (token === undefined) continue;
    const headers = new Headers({ "content-type": "application/x-www-form-urlencoded" });
    const body = new URLSearchParams({ token, token_type_hint: kind });
    if (client !== undefined)
      identify(sdk.selectClientAuthMethod(client, [...(methods ?? [])]), client, { headers, body });
    const response = await login.fetch(endpoint, { method: "POST", headers, body });
    if (!response.ok) refusal ??= await sdk.parseErrorResponse(response);
  }
  if (refusal !== undefined) throw refusal;
}

/** Adds who kit is at the authorization server, in the way that it takes. */
function identify(
  method: string,
  {
    client_id,
    client_secret = "",
  }: { readonly client_id: string; readonly client_secret?: string | undefined },
  { headers, body }: { readonly headers: Headers; readonly body: URLSearchParams },
): void {
  if (method === "client_secret_basic") {
    const pair = [client_id, client_secret].map(encodeURIComponent).join(":");
    headers.set("authorization", `Basic ${Buffer.from(pair).toString("base64")}`);
    return;
  }
  body.set("client_id", client_id);
  if (method === "client_secret_post") body.set("client_secret", client_secret);
}

function noRevocation(): ServerFailure {
  return new ServerFailure("Its authorization server takes no revocations.", { outcome: "refused" });
}
