import { isDeepStrictEqual } from "node:util";
import type { OAuthDiscoveryState, OAuthTokens } from "@modelcontextprotocol/client";
import { defined } from "../../base/record.ts";
import { times } from "../limits.ts";
import { loadSdk, type McpSdk } from "../servers/load-mcp-sdk.ts";
import type { OAuthSettings } from "../servers/mcp-config.ts";
import { ServerFailure } from "../servers/server-failure.ts";
import { createGuardedFetch, isSafeForTokens } from "./guarded-fetch.ts";
import { LoginNeeded, loginCommand, needsLogin, toLoginFailure } from "./login-failure.ts";
import { LoginFile, type LoginRecord, type Tokens } from "./login-file.ts";

/** Sends a request to the MCP server. */
type Send = (init: RequestInit) => Promise<Response>;

/** The server asks for this with a 401 or 403. */
export interface Challenge {
  readonly scope: string | undefined;
  readonly resourceMetadataUrl: URL | undefined;
}

/** The login at one server: puts access tokens into requests, renews them, and says when a person has to log in. */
export class ServerLogin {
  readonly name: string;
  readonly url: URL;
  readonly settings: OAuthSettings;
  readonly file: LoginFile;
  /** The values to mask in texts of the server; another list after each change. */
  secrets: readonly string[] = [];
  readonly fetch: ReturnType<typeof createGuardedFetch>;
  /** Tokens that a program gets by itself stay in this process. */
  #own: Tokens | undefined;
  #renewing: Promise<void> | undefined;

  constructor(of: {
    readonly name: string;
    readonly url: URL;
    readonly root: string;
    /** The folder of the person's logins. */
    readonly folder: string;
    readonly settings: OAuthSettings;
  }) {
    this.name = of.name;
    this.url = of.url;
    this.settings = of.settings;
    this.file = new LoginFile(of.folder, of);
    this.fetch = createGuardedFetch({ server: of.url, issuer: of.settings.issuer });
  }

  get #isProgram(): boolean {
    return this.settings.grant === "client_credentials";
  }

  /**
   * Sends a request with an access token, if there is one. Renews tokens shortly before they end, and once when the server does not
   * accept them. Rejects with `ServerFailure` if that takes a person, or if the authorization server fails.
   */
  async send(init: RequestInit, send: Send): Promise<Response> {
    if (!isSafeForTokens(this.url)) return await send(init);
    const sdk = await loadSdk();
    let tokens = await this.#fresh();
    let challenge: Challenge | undefined;
    // A second time, because another process may renew the tokens between two steps.
    for (let renewals = 0; ; renewals += 1) {
      const response = await send(withToken(init, tokens));
      challenge = challengeOf(sdk, response);
      if (challenge === undefined) return response;
      await response.body?.cancel();
      if (renewals === 2) break;
      if (response.status === 403) await this.#widen(sdk, tokens, challenge);
      else await this.#renew(tokens, challenge);
      tokens = this.#readTokens();
    }
    if (this.#isProgram)
      throw new ServerFailure("It does not accept the access token of its authorization server.", {
        outcome: "refused",
      });
    await this.#note(challenge, tokens);
    throw needsLogin(this.name, "It does not accept the login");
  }

  /** Waits until no tokens are being renewed: an answer on its way has the only valid ones. */
  async settled(): Promise<void> {
    await this.#renewing?.catch(() => undefined);
  }

  /** The tokens that are kept now. */
  #readTokens(): Tokens | undefined {
    const tokens = this.#isProgram ? this.#own : this.file.read().tokens;
    const values = [tokens?.access_token, tokens?.refresh_token].filter((value) => value !== undefined);
    if (values.some((value) => !this.secrets.includes(value)))
      this.secrets = [...values, ...this.secrets].slice(0, 8);
    return tokens;
  }

  async #fresh(): Promise<Tokens | undefined> {
    const tokens = this.#readTokens();
    const { expires_at: end = Number.POSITIVE_INFINITY } = tokens ?? {};
    const canRenew = this.#isProgram || tokens?.refresh_token !== undefined;
    if (end - Date.now() > times.renewal || !canRenew) return tokens;
    try {
      await this.#renew(tokens, undefined);
    } catch (error) {
      if (end <= Date.now() || !(error instanceof ServerFailure) || error.outcome === "refused") throw error;
    }
    return this.#readTokens();
  }

  /** One renewal at a time in this process, and under the lock of the file in all. */
  async #renew(seen: Tokens | undefined, challenge: Challenge | undefined): Promise<void> {
    this.#renewing ??= this.#renewNow(seen, challenge).finally(() => {
      this.#renewing = undefined;
    });
    await this.#renewing;
  }

  async #renewNow(seen: Tokens | undefined, challenge: Challenge | undefined): Promise<void> {
    const sdk = await loadSdk();
    try {
      if (this.#isProgram) {
        if (this.#own?.access_token === seen?.access_token)
          this.#own = await this.#requestTokens(sdk, challenge);
        return;
      }
      await this.#refresh(sdk, seen, challenge);
    } catch (error) {
      if (error instanceof LoginNeeded) await this.#note(challenge, seen);
      throw toLoginFailure(sdk, error);
    }
  }

  async #refresh(sdk: McpSdk, seen: Tokens | undefined, challenge: Challenge | undefined): Promise<void> {
    const { tokens: kept, discovery: known } = this.file.read();
    if (kept === undefined) throw needsLogin(this.name, "It requires a login");
    if (kept.access_token !== seen?.access_token) return;
    // After a refusal, the server may belong to another authorization server than before. kit asks before it takes the lock: under it,
    // several slow answers would take longer than other processes wait.
    const discovery = challenge === undefined ? known : undefined;
    const found = discovery ?? (await this.#discover(sdk, challenge));
    const issuer = issuerOf(found);
    await this.file.change(async (current, write) => {
      const { tokens } = current;
      // Another process was faster.
      if (tokens !== undefined && tokens.access_token !== seen?.access_token) return;
      if (tokens?.refresh_token === undefined) throw needsLogin(this.name, "The login at it has ended");
      if (issuer !== tokens.issuer)
        throw needsLogin(this.name, "It has moved to another authorization server");
      if (issuer !== (this.settings.issuer ?? issuer))
        throw needsLogin(this.name, "The login at it is of another authorization server than `oauth.issuer`");
      try {
        const next = await sdk.refreshAuthorization(found.authorizationServerUrl, {
          ...defined({ metadata: found.authorizationServerMetadata }),
          clientInformation: this.configured(issuer) ?? current.clients?.[issuer] ?? { client_id: "" },
          refreshToken: tokens.refresh_token,
          ...(await this.#resource(sdk, found)),
          fetchFn: this.fetch,
        });
        write({ ...current, discovery: found, tokens: toTokens(next, { issuer, scope: tokens.scope }) });
      } catch (error) {
        // Any other refusal is about kit or the request: the login is still good.
        if (!(error instanceof sdk.OAuthError) || error.code !== sdk.OAuthErrorCode.InvalidGrant) throw error;
        write({ ...current, tokens: undefined });
        throw needsLogin(this.name, `The login at it has ended (${error.code})`);
      }
    });
  }

  /**
   * Keeps what the server asks for, for the next login, unless the login is another than the one that was `seen` meanwhile. A folder
   * that cannot be written costs only that.
   */
  async #note(challenge: Challenge | undefined, seen: Tokens | undefined): Promise<void> {
    const asked = challenge && { scope: challenge.scope, metadata: challenge.resourceMetadataUrl?.href };
    const next = ({ tokens, requested }: LoginRecord): LoginRecord["requested"] =>
      tokens !== undefined && tokens.access_token !== seen?.access_token
        ? requested
        : { ...defined(asked ?? requested ?? {}), at: requested?.at ?? new Date().toISOString() };
    const isSame = (record: LoginRecord): boolean => isDeepStrictEqual(record.requested, next(record));
    if (isSame(this.file.read())) return;
    await this.file
      .change(async (current, write) => isSame(current) || write({ ...current, requested: next(current) }))
      .catch(() => undefined);
  }

  /** Asks for what a 403 with `insufficient_scope` names. */
  async #widen(sdk: McpSdk, tokens: Tokens | undefined, challenge: Challenge): Promise<void> {
    const scope = sdk.computeScopeUnion(tokens?.scope, challenge.scope);
    const refused = (why: string): ServerFailure =>
      new ServerFailure(`It denies access (HTTP 403, insufficient_scope)${why}`, { outcome: "refused" });
    // Asking again for what the tokens are for would go on for ever.
    if (scope === undefined || !sdk.isStrictScopeSuperset(scope, tokens?.scope))
      throw refused(", although the access token is for what it asks for.");
    if (this.#isProgram) return await this.#renew(tokens, { ...challenge, scope });
    await this.#note({ ...challenge, scope }, tokens);
    throw refused(`: run ${loginCommand(this.name)}, or open kit's console, to allow it more.`);
  }

  async #requestTokens(sdk: McpSdk, challenge: Challenge | undefined): Promise<Tokens> {
    const { client_id = "", client_secret = "", issuer: expectedIssuer = "" } = this.settings;
    const found = await this.#discover(sdk, challenge);
    const scope = challenge?.scope ?? this.#own?.scope ?? this.settings.scope;
    const issuer = issuerOf(found);
    const provider = new sdk.ClientCredentialsProvider({
      ...{ clientId: client_id, clientSecret: client_secret, clientName: "kit", expectedIssuer },
      ...defined({ scope }),
    });
    const next = await sdk.fetchToken(provider, found.authorizationServerUrl, {
      ...defined({ metadata: found.authorizationServerMetadata, scope }),
      ...(await this.#resource(sdk, found)),
      fetchFn: this.fetch,
    });
    return toTokens(next, { issuer, scope });
  }

  async #discover(sdk: McpSdk, challenge: Challenge | undefined): Promise<OAuthDiscoveryState> {
    return await sdk.discoverOAuthServerInfo(this.url, {
      fetchFn: this.fetch,
      ...defined({ resourceMetadataUrl: challenge?.resourceMetadataUrl }),
    });
  }

  /** The resource of the tokens, as the server writes it. Throws if its metadata names another server. */
  async #resource(
    sdk: McpSdk,
    { resourceMetadata }: OAuthDiscoveryState,
  ): Promise<{ readonly resource?: string }> {
    if (resourceMetadata === undefined) return {};
    const { resource } = resourceMetadata;
    if (
      !sdk.checkResourceAllowed({
        requestedResource: sdk.resourceUrlFromServerUrl(this.url),
        configuredResource: resource,
      })
    )
      throw new Error("Protected resource does not match.");
    return { resource };
  }

  /** How the configuration says that kit is known at an authorization server: only at that of `oauth.issuer`, if it has one. An address as id is that of a metadata document. */
  configured(issuer: string): { client_id: string; client_secret?: string; issuer: string } | undefined {
    const { client_id, client_secret, issuer: only = issuer } = this.settings;
    if (issuer !== only) return undefined;
    if (client_id === undefined || isDocument(client_id)) return undefined;
    return { client_id, issuer, ...(client_secret === undefined ? {} : { client_secret }) };
  }
}

/** Whether a client id is the address of a Client ID Metadata Document. */
export function isDocument(id: string): boolean {
  return /^https:\/\/[^/]+\/./.test(id);
}

export function issuerOf({
  authorizationServerMetadata,
  authorizationServerUrl,
}: OAuthDiscoveryState): string {
  return authorizationServerMetadata?.issuer ?? authorizationServerUrl;
}

/** Without a scope in the answer, tokens are for what was asked. */
export function toTokens(
  answer: OAuthTokens,
  { issuer, scope }: { readonly issuer: string; readonly scope: string | undefined },
): Tokens {
  const { expires_in } = answer;
  return {
    ...answer,
    issuer,
    ...(scope === undefined || answer.scope !== undefined ? {} : { scope }),
    ...(expires_in === undefined ? {} : { expires_at: Date.now() + expires_in * 1000 }),
  };
}

function withToken(init: RequestInit, tokens: Tokens | undefined): RequestInit {
  if (tokens === undefined) return init;
  const headers = new Headers(init.headers);
  headers.set("authorization", `Bearer ${tokens.access_token}`);
  return { ...init, headers };
}

/** Returns what a response asks for; `undefined` if it is not a question of authorization. */
export function challengeOf(sdk: McpSdk, response: Response): Challenge | undefined {
  if (response.status !== 401 && response.status !== 403) return undefined;
  const { resourceMetadataUrl, scope, error } = sdk.extractWWWAuthenticateParams(response);
  if (response.status === 403 && error !== "insufficient_scope") return undefined;
  return { scope, resourceMetadataUrl };
}
