/** The money of a run, in US dollars. */
export class Spending {
  readonly #most: number | undefined;
  /** Null if the price of a call is unknown. */
  total: number | null = 0;

  constructor(most: number | undefined) {
    this.#most = most;
  }

  add(cost: number | null): void {
    this.total = this.total === null || cost === null ? null : this.total + cost;
  }

  /** The rest below the limit; undefined without one. An unknown price counts as all of it. */
  get left(): number | undefined {
    if (this.#most === undefined) return undefined;
    return this.total === null ? 0 : Math.max(0, this.#most - this.total);
  }
}
