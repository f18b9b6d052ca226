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
import type { LoggedIn } from "./browser-logins.ts";
import { type CallbackServer, isCallbackAddress, openCallbackServer } from "./callback-server.ts";
import { isAllowedScheme, isSafeForTokens } from "./guarded-fetch.ts";
import { toLoginFailure } from "./login-failure.ts";
import type { PendingLogin } from "./login-file.ts";
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

/**
 * Lets a person log in at the authorization server of an MCP server, and keeps the tokens; the browser comes back to a port of this
 * machine. Asks for what the server has asked for in vain, so connect to it before. Rejects with `ServerFailure`.
 */
export async function logIn(login: ServerLogin, options: LogInOptions): Promise<LoggedIn> {
  const callback = await openCallback(login);
  try {
    const { address, pending } = await beginLogin(login, {
      redirect: callback.url,
      state: randomBytes(32).toString("base64url"),
    });
    options.show(address);
    return await finishLogin(login, pending, await waitForAnswer(callback, pending.state, options));
  } catch (error) {
    options.signal.throwIfAborted();
    throw error;
  } finally {
    callback.close();
  }
}

async function openCallback({ settings, file }: ServerLogin): Promise<CallbackServer> {
  const { client_id, callback_port } = settings;
  const registered = Object.values(file.read().clients ?? {})
    .map(portOf)
    .find((port) => port !== undefined);
  const isRequired = client_id !== undefined && callback_port !== undefined;
  return await openCallbackServer(callback_port ?? registered, { isRequired }).catch((cause: unknown) => {
    throw new ServerFailure(`The port ${callback_port} of \`oauth.callback_port\` is in use.`, {
      outcome: "not_sent",
      cause,
    });
  });
}

/** A login that waits for a browser. */
export interface BegunLogin {
  /** The address for the browser to open. */
  readonly address: URL;
  readonly pending: Omit<PendingLogin, "until">;
}

/**
 * Begins a login: finds the authorization server, and makes kit known to it. `redirect` is the address that the browser comes back to
 * with `state`. Rejects with `ServerFailure`.
 */
export async function beginLogin(
  login: ServerLogin,
  { redirect, state }: Pick<PendingLogin, "redirect" | "state">,
): Promise<BegunLogin> {
  if (!isSafeForTokens(login.url))
    throw new ServerFailure("Its address has no https, so kit sends it no tokens.", { outcome: "not_sent" });
  return await explained(async (sdk) => {
    const { clients = {}, requested = {}, tokens: old } = login.file.read();
    const attempt = createAttempt(login, { redirect, state, clients });
    await sdk.auth(attempt.provider, {
      serverUrl: login.url,
      fetchFn: login.fetch,
      ...defined({
        scope: sdk.computeScopeUnion(old?.scope, requested.scope, login.settings.scope),
        resourceMetadataUrl: URL.parse(requested.metadata ?? "") ?? undefined,
      }),
    });
    const { address, discovery, verifier } = attempt;
    if (address === undefined || discovery === undefined) throw new Error("There is no address to open.");
    const scope = address.searchParams.get("scope") ?? undefined;
    return {
      address,
      pending: { state, verifier, redirect, discovery, clients: attempt.clients, ...defined({ scope }) },
    };
  });
}

/**
 * Finishes a login with the parameters that the browser came back with, whose `state` the caller has compared. Replaces an earlier
 * login only if this one succeeds, and leaves a login that a browser has begun. Rejects with `ServerFailure`.
 */
export async function finishLogin(
  login: ServerLogin,
  pending: BegunLogin["pending"],
  answer: URLSearchParams,
): Promise<LoggedIn> {
  return await explained(async (sdk) => {
    const { discovery, scope } = pending;
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
    const attempt = createAttempt(login, pending);
    await sdk.auth(attempt.provider, {
      serverUrl: login.url,
      fetchFn: login.fetch,
      authorizationCode: code,
      ...defined({ iss, scope }),
    });
    const issuer = issuerOf(discovery);
    if (attempt.tokens === undefined) throw new Error("There are no tokens.");
    const tokens = toTokens(attempt.tokens, { issuer, scope });
    await login.file.change(async ({ pending: begun, clients }, write) =>
      write({ tokens, discovery, clients: { ...clients, ...attempt.clients }, pending: begun }),
    );
    return { issuer, scope: tokens.scope };
  });
}

/** Runs a part of a login; every failure is a `ServerFailure`. */
export async function explained<Result>(work: (sdk: McpSdk) => Promise<Result>): Promise<Result> {
  const sdk = await loadSdk();
  try {
    return await work(sdk);
  } catch (error) {
    throw toLoginFailure(sdk, error);
  }
}

interface Attempt {
  readonly provider: OAuthClientProvider;
  /** The SDK has found and got these so far. */
  address: URL | undefined;
  discovery: OAuthDiscoveryState | undefined;
  tokens: Parameters<OAuthClientProvider["saveTokens"]>[0] | undefined;
  verifier: string;
  clients: PendingLogin["clients"];
}

/** Answers the SDK during one half of a login, and keeps its results in memory. */
function createAttempt(
  login: ServerLogin,
  {
    redirect,
    state,
    ...known
  }: Pick<PendingLogin, "redirect" | "state" | "clients"> & Partial<BegunLogin["pending"]>,
): Attempt {
  const { issuer, client_id, scope } = login.settings;
  const provider: OAuthClientProvider = {
    redirectUrl: redirect,
    ...(client_id !== undefined && isDocument(client_id) ? { clientMetadataUrl: client_id } : {}),
    clientMetadata: {
      client_name: "kit",
      redirect_uris: [redirect],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      ...defined({ scope }),
    },
    state: () => state,
    clientInformation: ({ issuer: at } = { issuer: "" }) => {
      const client = login.configured(at) ?? attempt.clients[at];
      // kit has registered itself with another address, which authorization servers compare.
      const [registered = redirect] = redirectsOf(client);
      return registered === redirect ? client : undefined;
    },
    saveClientInformation: (information, { issuer: at } = { issuer: "" }) => {
      if (login.configured(at) === undefined) attempt.clients = { ...attempt.clients, [at]: information };
    },
    tokens: () => undefined,
    saveTokens: (tokens) => {
      attempt.tokens = tokens;
    },
    saveCodeVerifier: (code) => {
      attempt.verifier = code;
    },
    codeVerifier: () => attempt.verifier,
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
      if (!isAllowedScheme(address, login.url))
        throw new ServerFailure(
          `Its authorization server has its login page at an address without https (${address.protocol}//${address.host}), where kit sends no browser.`,
          { outcome: "refused" },
        );
      attempt.address = address;
    },
  };
  const attempt: Attempt = {
    provider,
    address: undefined,
    discovery: known.discovery,
    tokens: undefined,
    verifier: known.verifier ?? "",
    clients: known.clients,
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

/** The port of this machine that kit registered itself with. */
function portOf(client: StoredOAuthClientInformation): number | undefined {
  const url = URL.parse(redirectsOf(client)[0] ?? "");
  const port = Number(url?.port);
  return url !== null && isCallbackAddress(url) && port > 0 ? port : undefined;
}

/** The addresses that kit registered itself with. */
function redirectsOf(client: StoredOAuthClientInformation | undefined): readonly string[] {
  const { redirect_uris = [] } = (client ?? {}) as { readonly redirect_uris?: readonly string[] };
  return redirect_uris;
}

function codeOf(answer: URLSearchParams): string {
  const code = answer.get("error") ?? "";
  return /^[a-z_]{1,40}$/.test(code) ? code : "without a reason";
}
