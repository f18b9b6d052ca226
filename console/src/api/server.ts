import { KitClient } from "../../../src/client/index.ts";

/** Where the server is: the page's own address without `console/`, so that a proxy may serve it below any path. */
export const serverRoot: URL = new URL("..", document.baseURI);

/** Whether the server was told to refuse what this page would change (`server.console = "read"`). */
export const isReadOnly: boolean =
  document.querySelector<HTMLMetaElement>('meta[name="kit-console"]')?.content === "read";

const storageName = `kit-key ${serverRoot.pathname}`;

interface Connection {
  readonly client: KitClient;
  readonly key: string | undefined;
  /** The server has refused the last key, or asks for one. */
  readonly isRefused: boolean;
}

/** The client of this page with the key of who looks at it; the key stays in memory unless it is to be kept. */
class Session {
  #connection: Connection;
  readonly #listeners = new Set<() => void>();

  constructor() {
    this.#connection = connect(sessionStorage.getItem(storageName) ?? undefined);
  }

  get current(): Connection {
    return this.#connection;
  }

  /** Signs in; `keep` keeps the key until the tab is closed. */
  signIn(key: string, { remember }: { readonly remember: boolean }): void {
    if (remember) sessionStorage.setItem(storageName, key);
    else sessionStorage.removeItem(storageName);
    this.#set(connect(key));
  }

  signOut(): void {
    sessionStorage.removeItem(storageName);
    this.#set({ ...connect(undefined), isRefused: true });
  }

  /** Hears that the server answered 401. */
  refuse(client: KitClient): void {
    // An answer to an older key says nothing about this one.
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
    retry: { attempts: 2, reconnects: 1_000 },
  });
  return { client, key, isRefused: false };
}

export const session: Session = new Session();
