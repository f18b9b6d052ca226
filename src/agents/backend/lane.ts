/** What goes into a history goes one after the other; what runs beside it does not wait. */
export class Lane {
  /** How much runs beside it; call `wake` after taking one away. */
  besides = 0;
  #busy = false;
  readonly #waiting: (() => void)[] = [];

  /** False while it is taken: wait for a `change`, and try again. */
  enter(): boolean {
    if (this.#busy) return false;
    this.#busy = true;
    return true;
  }

  leave(): void {
    this.#busy = false;
    this.wake();
  }

  wake(): void {
    if (this.#waiting.length > 0) for (const wake of this.#waiting.splice(0)) wake();
  }

  change(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Resolves once nothing runs, in it or beside it. */
  async quiet(): Promise<void> {
    while (this.#busy || this.besides > 0) await this.change();
  }
}

/** A framework may have ended by the time that it fails, and not look: that must not end the process. */
export function heard<Value>(promise: Promise<Value>): Promise<Value> {
  promise.catch(() => undefined);
  return promise;
}
