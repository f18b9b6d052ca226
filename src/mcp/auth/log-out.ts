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
  if (tokens === undefined || discovery === undefined) throw noRevocation();
  const { issuer } = tokens;
  if (issuerOf(discovery) !== issuer)
    throw new ServerFailure(
      "The login is of another authorization server than the one that the server names now.",
      { outcome: "refused" },
    );
  // Metadata of OpenID can have both, too, although its type does not.
  const { revocation_endpoint: address, revocation_endpoint_auth_methods_supported: methods }: Revocations =
    (discovery.authorizationServerMetadata as Revocations | undefined) ?? {};
  const endpoint = URL.parse(address ?? "");
  if (endpoint === null) throw noRevocation();
  const sdk = await loadSdk();
  const client = login.configured(issuer) ?? clients[issuer];
  const send = async (kind: "refresh_token" | "access_token", token: string): Promise<void> => {
    const headers = new Headers({ "content-type": "application/x-www-form-urlencoded" });
    const body = new URLSearchParams({ token, token_type_hint: kind });
    if (client !== undefined)
      identify(sdk.selectClientAuthMethod(client, [...(methods ?? [])]), client, { headers, body });
    const response = await login.fetch(endpoint, { method: "POST", headers, body });
    if (!response.ok) throw await sdk.parseErrorResponse(response);
  };
  const { refresh_token: refresh, access_token: access } = tokens;
  // The refresh token first: with it, authorization servers end the access tokens, too, and some take no access tokens.
  const [first] = refresh === undefined ? [] : await Promise.allSettled([send("refresh_token", refresh)]);
  const [second] = await Promise.allSettled([send("access_token", access)]);
  const decisive = first ?? second;
  if (decisive.status === "rejected") throw decisive.reason;
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
