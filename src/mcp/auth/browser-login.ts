import { createHash, randomBytes } from "node:crypto";
import { times } from "../limits.ts";
import type { ServerLink } from "../servers/server-link.ts";
import type { BrowserLogins } from "./browser-logins.ts";
import { beginLogin, explained, finishLogin } from "./log-in.ts";
import type { PendingLogin } from "./login-file.ts";
import type { ServerLogin } from "./server-login.ts";

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
