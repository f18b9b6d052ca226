/** Serializes work that appends to a history, and counts work that runs beside it. */
export class Lane {
  /** Work that runs beside the lane; call `wake` after decreasing it. */
  besides = 0;
  #busy = false;
  readonly #waiting: (() => void)[] = [];

  /** False while another caller is in the lane: wait for a `change`, then try again. */
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

  /** Resolves once no work runs in the lane or beside it. */
  async quiet(): Promise<void> {
    while (this.#busy || this.besides > 0) await this.change();
  }
}

/** Marks a rejection as handled: a framework that has ended does not await it, and the process must not end. */
export function handled<Value>(promise: Promise<Value>): Promise<Value> {
  promise.catch(() => undefined);
  return promise;
}
