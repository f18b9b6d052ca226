/** The time between attempts to reach a server that is gone. */
const retryMs = 2_000;

/** Whether the server can be reached, from the requests of this page. */
class Connection {
  #isLost = false;
  readonly #listeners = new Set<() => void>();

  get isLost(): boolean {
    return this.#isLost;
  }

  /** `fetch`, which notices whether a server answers. */
  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    try {
      const response = await globalThis.fetch(input, init);
      // A proxy answers so for a server that is gone.
      this.#set(response.status === 502 || response.status === 504);
      return response;
    } catch (error) {
      if (init?.signal?.aborted !== true) this.#set(true);
      throw error;
    }
  };

  /** Asks the server whether it is there. */
  async check(): Promise<void> {
    const address = new URL("../health", document.baseURI);
    await this.fetch(address, { cache: "no-store" }).catch(() => undefined);
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  #set(isLost: boolean): void {
    if (isLost === this.#isLost) return;
    this.#isLost = isLost;
    for (const listener of this.#listeners) listener();
    if (isLost) this.#tryAgain();
  }

  #tryAgain(): void {
    setTimeout(async () => {
      if (!this.#isLost) return;
      await this.check();
      if (this.#isLost) this.#tryAgain();
    }, retryMs);
  }
}

export const connection: Connection = new Connection();
