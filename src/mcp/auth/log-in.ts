import { randomBytes } from "node:crypto";
import type {
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
} from "@modelcontextprotocol/client";
import { withDeadline } from "../../base/abort.ts";
import { defined } from "../../base/record.ts";
import { times } from "../limits.ts";
import { loadSdk, type McpSdk } from "../servers/load-mcp-sdk.ts";
import { ServerFailure } from "../servers/server-failure.ts";
import { type CallbackServer, openCallbackServer } from "./callback-server.ts";
import { isSafeForTokens } from "./guarded-fetch.ts";
import { toLoginFailure } from "./login-failure.ts";
import { isDocument, issuerOf, type ServerLogin, toTokens } from "./server-login.ts";

export interface LogInOptions {
  /** Shows the person the address to open in a browser. */
  readonly show: (address: URL) => void;
  /** Resolves with the address that the browser came back to, if the person enters it: for browsers on other machines. */
  readonly pasted?: ((signal: AbortSignal) => Promise<string>) | undefined;
  readonly signal: AbortSignal;
  /** Milliseconds that the person has; default 5 minutes. */
  readonly timeoutMs?: number | undefined;
}

/** The result of a login. */
export interface LoggedIn {
  /** The authorization server. */
  readonly issuer: string;
  /** The scope of the login, if the authorization server names it. */
  readonly scope?: string | undefined;
}

/**
 * Lets a person log in at the authorization server of an MCP server, and keeps the tokens. Asks for what the server has asked for
 * in vain, so connect to it before. Replaces an earlier login only when the new one has succeeded. Rejects with `ServerFailure`.
 */
export async function logIn(login: ServerLogin, options: LogInOptions): Promise<LoggedIn> {
  if (!isSafeForTokens(login.url))
    throw new ServerFailure("Its address has no https, so kit sends it no tokens.", { outcome: "not_sent" });
  const sdk = await loadSdk();
  try {
    return await authorize(sdk, login, options);
  } catch (error) {
    options.signal.throwIfAborted();
    throw toLoginFailure(sdk, error);
  }
}

async function authorize(sdk: McpSdk, login: ServerLogin, options: LogInOptions): Promise<LoggedIn> {
  const before = login.file.read();
  const { settings } = login;
  const registered = Object.values(before.clients ?? {})
    .map(portOf)
    .find((port) => port !== undefined);
  const isConfigured = settings.client_id !== undefined && settings.callback_port !== undefined;
  const callback = await openCallbackServer(settings.callback_port ?? registered, {
    isRequired: isConfigured,
  }).catch((cause: unknown) => {
    throw new ServerFailure(`The port ${settings.callback_port} of \`oauth.callback_port\` is in use.`, {
      outcome: "not_sent",
      cause,
    });
  });
  try {
    const attempt = createAttempt(login, { callback, clients: before.clients ?? {} });
    const { requested = {}, tokens: old } = before;
    const scope = sdk.computeScopeUnion(old?.scope, requested.scope, settings.scope);
    const request = {
      serverUrl: login.url,
      fetchFn: login.fetch,
      ...defined({ scope, resourceMetadataUrl: URL.parse(requested.metadata ?? "") ?? undefined }),
    };
    await sdk.auth(attempt.provider, request);
    const { address, discovery } = attempt;
    if (address === undefined || discovery === undefined) throw new Error("There is no address to open.");
    options.show(address);
    const answer = await waitForAnswer(callback, attempt.state, options);
    const iss = answer.get("iss") ?? undefined;
    const code = answer.get("code");
    if (code === null) {
      const metadata = discovery.authorizationServerMetadata;
      sdk.validateAuthorizationResponseIssuer({
        iss,
        expectedIssuer: metadata?.issuer,
        issParameterSupported: metadata?.authorization_response_iss_parameter_supported === true,
      });
      throw new ServerFailure(`Its authorization server refuses the login (${codeOf(answer)}).`, {
        outcome: "refused",
      });
    }
    await sdk.auth(attempt.provider, { ...request, authorizationCode: code, ...defined({ iss }) });
    const issuer = issuerOf(discovery);
    if (attempt.tokens === undefined) throw new Error("There are no tokens.");
    const asked = address.searchParams.get("scope") ?? undefined;
    const tokens = toTokens(attempt.tokens, { issuer, scope: asked });
    await login.file.change(async (_, write) => write({ tokens, discovery, clients: attempt.clients }));
    return { issuer, scope: tokens.scope };
  } finally {
    callback.close();
  }
}

interface Attempt {
  readonly provider: OAuthClientProvider;
  readonly state: string;
  /** The SDK has found and got these so far. */
  address: URL | undefined;
  discovery: OAuthDiscoveryState | undefined;
  tokens: Parameters<OAuthClientProvider["saveTokens"]>[0] | undefined;
  clients: Readonly<Record<string, StoredOAuthClientInformation>>;
}

/** One login, kept in memory until it has succeeded. */
function createAttempt(
  login: ServerLogin,
  { callback, clients }: { readonly callback: CallbackServer; readonly clients: Attempt["clients"] },
): Attempt {
  const { issuer, client_id, scope } = login.settings;
  const state = randomBytes(32).toString("base64url");
  let verifier = "";
  const provider: OAuthClientProvider = {
    redirectUrl: callback.url,
    ...(client_id !== undefined && isDocument(client_id) ? { clientMetadataUrl: client_id } : {}),
    clientMetadata: {
      client_name: "kit",
      redirect_uris: [callback.url],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      ...defined({ scope }),
    },
    state: () => state,
    clientInformation: ({ issuer: at } = { issuer: "" }) => {
      const known = login.configured(at) ?? attempt.clients[at];
      // kit has registered itself with another port, which some authorization servers compare.
      const port = portOf(known);
      return port !== undefined && !callback.url.includes(`:${port}/`) ? undefined : known;
    },
    saveClientInformation: (information, { issuer: at } = { issuer: "" }) => {
      if (login.configured(at) === undefined) attempt.clients = { ...attempt.clients, [at]: information };
    },
    tokens: () => undefined,
    saveTokens: (tokens) => {
      attempt.tokens = tokens;
    },
    saveCodeVerifier: (code) => {
      verifier = code;
    },
    codeVerifier: () => verifier,
    discoveryState: () => attempt.discovery,
    saveDiscoveryState: (found) => {
      if (issuer !== undefined && issuerOf(found) !== issuer)
        throw new ServerFailure("It names another authorization server than `oauth.issuer`.", {
          outcome: "refused",
        });
      attempt.discovery = found;
    },
    // The SDK would send the same code again.
    invalidateCredentials: () => {
      throw new ServerFailure("Its authorization server does not accept the login.", { outcome: "refused" });
    },
    redirectToAuthorization: (address) => {
      if (!/^https?:$/.test(address.protocol))
        throw new ServerFailure("Its authorization server has no web address for logins.", {
          outcome: "refused",
        });
      attempt.address = address;
    },
  };
  const attempt: Attempt = {
    provider,
    state,
    clients,
    address: undefined,
    discovery: undefined,
    tokens: undefined,
  };
  return attempt;
}

async function waitForAnswer(
  callback: CallbackServer,
  state: string,
  { pasted, signal, timeoutMs = times.login }: LogInOptions,
): Promise<URLSearchParams> {
  const ending = new AbortController();
  const entered = pasted?.(AbortSignal.any([signal, ending.signal])).then((text) => {
    const answer = URL.parse(text.trim())?.searchParams;
    if (answer?.get("state") === state) return answer;
    throw new ServerFailure("The entered address does not belong to this login.", { outcome: "refused" });
  });
  const answers = [callback.answer(state), ...(entered === undefined ? [] : [entered])];
  try {
    return await withDeadline(Promise.race(answers), {
      ms: timeoutMs,
      signal,
      onTimeout: () =>
        new ServerFailure(
          `There was no answer from the browser within ${timeoutMs / 1000} s. Log in again when you can open the address.`,
          { outcome: "refused" },
        ),
    });
  } finally {
    ending.abort();
    entered?.catch(() => undefined);
  }
}

/** The port of the address that kit registered itself with. */
function portOf(client: StoredOAuthClientInformation | undefined): number | undefined {
  const { redirect_uris = [] } = (client ?? {}) as { readonly redirect_uris?: readonly string[] };
  const port = Number(URL.parse(redirect_uris[0] ?? "")?.port);
  return port > 0 ? port : undefined;
}

function codeOf(answer: URLSearchParams): string {
  const code = answer.get("error") ?? "";
  return /^[a-z_]{1,40}$/.test(code) ? code : "without a reason";
}
