/** Serializes work that appends to a history, and counts work that runs beside it. */
export class Lane {
  #besides = 0;
  #busy = false;
  readonly #waiting: (() => void)[] = [];

  /** Runs work once no other is in the lane. */
  async run<Value>(work: () => Promise<Value>): Promise<Value> {
    while (this.#busy) await this.#change();
    this.#busy = true;
    try {
      return await work();
    } finally {
      this.#busy = false;
      this.#wake();
    }
  }

  /** Runs work at once, beside the lane. */
  async beside<Value>(work: () => Promise<Value>): Promise<Value> {
    this.#besides += 1;
    try {
      return await work();
    } finally {
      this.#besides -= 1;
      this.#wake();
    }
  }

  /** Resolves once no work runs in the lane or beside it. */
  async quiet(): Promise<void> {
    while (this.#busy || this.#besides > 0) await this.#change();
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #change(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}

/** Marks a rejection as handled: a framework that has ended does not await it, and the process must not end. */
export function handled<Value>(promise: Promise<Value>): Promise<Value> {
  promise.catch(() => undefined);
  return promise;
}
