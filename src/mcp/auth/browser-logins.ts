// Types alone, without the package of the MCP client: programs that lack this optional package compile against them.

/** The result of a login. */
export interface LoggedIn {
  /** The authorization server. */
  readonly issuer: string;
  /** The scope of the login, if the authorization server names it. */
  readonly scope?: string | undefined;
}

/** A server at which a person has to log in, before agents can use it, or use all of it. */
export interface NeededLogin {
  readonly server: string;
  /** The host of its address. */
  readonly host: string;
  /** When it first asked in vain; ISO 8601. */
  readonly since: string;
  /** The scope that it asks for, if it names one. */
  readonly scope?: string | undefined;
}

/** A login that the browser which gets `secret` can finish, until `until` (milliseconds since 1970). */
export interface BegunBrowserLogin {
  /** The address for the browser to open. */
  readonly address: URL;
  readonly secret: string;
  /** The browser brings it back. The authorization server knows it, too. */
  readonly state: string;
  readonly until: number;
}

/** The browser that comes back. */
export interface ReturnedBrowser {
  /** The secret of the login that the browser began. */
  readonly secret: string;
  /** The parameters that the authorization server gave it. */
  readonly answer: URLSearchParams;
}

/**
 * Logins of persons whose browsers come back to kit's server. What a login needs meanwhile is in the file of the login, so each process
 * that uses the login can finish it. `begin` and `finish` reject with `ServerFailure`.
 */
export interface BrowserLogins {
  needed(): readonly NeededLogin[];
  /** Begins a login that ends at `redirect`, in place of one that has begun before; `undefined` if no person can log in at a server of this name. */
  begin(server: string, redirect: string): Promise<BegunBrowserLogin | undefined>;
  /** Finishes a login, once; `undefined` if this browser has begun none that is open. */
  finish(server: string, browser: ReturnedBrowser): Promise<LoggedIn | undefined>;
}
