/** The fields of a member of a chain. A member is in one chain at a time, or in none. */
export interface Link<Item> {
  chain?: object | undefined;
  before?: Item | undefined;
  after?: Item | undefined;
}

/**
 * A queue that members may leave from anywhere. No call costs more the longer it is, which cannot be said of an
 * array, nor of a Set whose first members are taken out again and again: each look at its first one passes over
 * those that have gone.
 */
export class Chain<Item extends Link<Item>> implements Iterable<Item> {
  #first: Item | undefined;
  #last: Item | undefined;
  #size = 0;

  get first(): Item | undefined {
    return this.#first;
  }

  get size(): number {
    return this.#size;
  }

  /** Adds it at the end; it must be in no chain. */
  push(item: Item): void {
    this.#insert(item, this.#last, undefined);
  }

  /** Adds it at the front; it must be in no chain. */
  unshift(item: Item): void {
    this.#insert(item, undefined, this.#first);
  }

  /** False when it is not in this chain. */
  remove(item: Item): boolean {
    if (item.chain !== this) return false;
    const { before, after } = item;
    if (before === undefined) this.#first = after;
    else before.after = after;
    if (after === undefined) this.#last = before;
    else after.before = before;
    item.chain = undefined;
    item.before = undefined;
    item.after = undefined;
    this.#size -= 1;
    return true;
  }

  *[Symbol.iterator](): Generator<Item, void, undefined> {
    for (let item = this.#first; item !== undefined; item = item.after) yield item;
  }

  #insert(item: Item, before: Item | undefined, after: Item | undefined): void {
    item.chain = this;
    item.before = before;
    item.after = after;
    if (before === undefined) this.#first = item;
    else before.after = item;
    if (after === undefined) this.#last = item;
    else after.before = item;
    this.#size += 1;
  }
}
