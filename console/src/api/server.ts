import { KitClient } from "../../../src/client/index.ts";
import { connection } from "./connection.ts";

/** The server's address: the page's own without `console/`, so that a proxy can serve it below any path. */
export const serverRoot: URL = new URL("..", document.baseURI);

/** Whether the server refuses changes by this page (`server.console = "read"`). */
export const isReadOnly: boolean =
  document.querySelector<HTMLMetaElement>('meta[name="kit-console"]')?.content === "read";

const storageName = `kit-key ${serverRoot.pathname}`;

interface Connection {
  readonly client: KitClient;
  readonly key: string | undefined;
  /** Whether the server has refused the last key, or asks for one. */
  readonly isRefused: boolean;
}

/** The client of this page, with the user's key. The key stays in memory, unless the user asks to keep it. */
class Session {
  #connection: Connection;
  readonly #listeners = new Set<() => void>();

  constructor() {
    this.#connection = connect(sessionStorage.getItem(storageName) ?? undefined);
  }

  get current(): Connection {
    return this.#connection;
  }

  /** Signs in; `keep` stores the key until the tab is closed. */
  signIn(key: string, { remember }: { readonly remember: boolean }): void {
    if (remember) sessionStorage.setItem(storageName, key);
    else sessionStorage.removeItem(storageName);
    this.#set(connect(key));
  }

  signOut(): void {
    sessionStorage.removeItem(storageName);
    this.#set({ ...connect(undefined), isRefused: true });
  }

  /** Reports that the server answered 401. */
  refuse(client: KitClient): void {
    // The answer can belong to an older key.
    if (client !== this.#connection.client || this.#connection.isRefused) return;
    this.#set({ ...this.#connection, isRefused: true });
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  #set(connection: Connection): void {
    this.#connection = connection;
    for (const listener of this.#listeners) listener();
  }
}

function connect(key: string | undefined): Connection {
  const client = new KitClient({
    baseUrl: serverRoot,
    apiKey: key,
    fetch: connection.fetch,
    retry: { attempts: 2, reconnects: 1_000 },
  });
  return { client, key, isRefused: false };
}

export const session: Session = new Session();
