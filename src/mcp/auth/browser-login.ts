import { createHash, randomBytes } from "node:crypto";
import { times } from "../limits.ts";
import type { ServerLink } from "../servers/server-link.ts";
import { beginLogin, explained, finishLogin, type LoggedIn } from "./log-in.ts";
import type { PendingLogin } from "./login-file.ts";
import type { ServerLogin } from "./server-login.ts";

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

/** Creates the logins at the servers of `links`. */
export function createBrowserLogins(links: readonly ServerLink[]): BrowserLogins {
  const loginOf = ({ settings: { endpoint } }: ServerLink): ServerLogin | undefined => {
    const login = endpoint.kind === "address" ? endpoint.login : undefined;
    return login?.settings.grant === "client_credentials" ? undefined : login;
  };
  const find = (server: string) => {
    const link = links.find(({ name }) => name === server);
    const login = link && loginOf(link);
    return login && { link, login };
  };
  return {
    needed: () =>
      links.flatMap((link) => {
        const login = loginOf(link);
        const { at: since, scope } = login?.file.read().requested ?? {};
        if (login === undefined || since === undefined) return [];
        return [{ server: link.name, host: login.url.host, since, scope }];
      }),
    async begin(server, redirect) {
      const found = find(server);
      if (found === undefined) return undefined;
      const { link, login } = found;
      const { requested, tokens } = login.file.read();
      // The server says what it asks for.
      if (requested === undefined && tokens === undefined) await link.catalogue();
      const secret = randomBytes(32).toString("base64url");
      const state = stateOf(secret);
      const { address, pending } = await beginLogin(login, { redirect, state });
      const until = Date.now() + times.browserLogin;
      await explained(() =>
        login.file.change(async (current, write) => write({ ...current, pending: { ...pending, until } })),
      );
      return { address, secret, state, until };
    },
    async finish(server, { secret, answer }) {
      const found = find(server);
      if (found === undefined) return undefined;
      const { link, login } = found;
      const state = stateOf(secret);
      const isOpen = (pending: PendingLogin | undefined): pending is PendingLogin =>
        pending?.state === state && answer.get("state") === state && pending.until > Date.now();
      // Without the lock first: everybody can send such requests.
      if (!isOpen(login.file.read().pending)) return undefined;
      const begun = await explained(() =>
        login.file.change(async ({ pending, ...current }, write) => {
          if (!isOpen(pending)) return undefined;
          write(current);
          return pending;
        }),
      );
      if (begun === undefined) return undefined;
      const done = await finishLogin(login, begun, answer);
      link.retryNow();
      return done;
    },
  };
}

/** The state that only the browser with the secret can have begun. */
function stateOf(secret: string): string {
  return createHash("sha256").update(secret).digest("base64url");
}
