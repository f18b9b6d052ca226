import { Chain, type Link } from "./chain.ts";
import { ServiceTimes } from "./service-times.ts";

/** An owner of queued work: a principal, or the instance or workflow that counts as one. */
export interface Owner<Line extends Link<Line>> extends Link<Owner<Line>> {
  readonly name: string;
  /** Its lines that could begin something, in the order of their turns. */
  readonly ready: Chain<Line>;
  readonly times: ServiceTimes;
  /** Slots that it has. */
  running: number;
  /** How many it had when it was put where it stands; none when it stands nowhere. */
  place: number | undefined;
  /** Its work that waits or runs; the owner is remembered for as long as there is any. */
  works: number;
  waiting: number;
}

/**
 * An owner may take one more slot while it has fewer than so many times those that are free, and the last one is for an
 * owner that has none: with 256 slots one owner has 224 at most, two have 119 each. So whoever comes next begins at
 * once, however much the others have to do. Of fewer than eight slots one owner may have all.
 */
const sharePerFreeSlot = 7;

/**
 * Picks the next line: that of the owner with the fewest slots; among several owners, of the one that has waited
 * longest; the lines of one owner take turns. The cost does not depend on how many lines and owners wait.
 */
export class Turns<Line extends Link<Line>> {
  readonly #owners = new Map<string, Owner<Line>>();
  /** Owners with ready lines, by how many slots each has. */
  readonly #bySlots = new Map<number, Chain<Owner<Line>>>();
  readonly #slots: number;
  #ready = 0;

  constructor(slots: number) {
    this.#slots = slots;
  }

  /** How many lines could begin something. */
  get ready(): number {
    return this.#ready;
  }

  find(name: string): Owner<Line> | undefined {
    return this.#owners.get(name);
  }

  /** The owner, made when it is new. It is kept until `forget`. */
  owner(name: string): Owner<Line> {
    let owner = this.#owners.get(name);
    if (owner === undefined) {
      owner = {
        name,
        ready: new Chain(),
        times: new ServiceTimes(),
        running: 0,
        place: undefined,
        works: 0,
        waiting: 0,
      };
      this.#owners.set(name, owner);
    }
    return owner;
  }

  /** Forgets an owner of which nothing waits or works. */
  forget(owner: Owner<Line>): void {
    if (owner.works === 0) this.#owners.delete(owner.name);
  }

  add(owner: Owner<Line>, line: Line): void {
    owner.ready.push(line);
    this.#ready += 1;
    this.#reorder(owner);
  }

  remove(owner: Owner<Line>, line: Line): void {
    if (!owner.ready.remove(line)) return;
    this.#ready -= 1;
    this.#reorder(owner);
  }

  /** Says that an owner has a slot more, or less. */
  count(owner: Owner<Line>, change: 1 | -1): void {
    owner.running += change;
    this.#reorder(owner);
  }

  /** The line whose turn it is, while so many slots are in use; undefined when none may begin. */
  next(running: number): { readonly owner: Owner<Line>; readonly line: Line } | undefined {
    let fewest = Number.POSITIVE_INFINITY;
    // The numbers differ from each other, and their sum is no more than the slots: there are few.
    for (const slots of this.#bySlots.keys()) fewest = Math.min(fewest, slots);
    const owner = this.#bySlots.get(fewest)?.first;
    const line = owner?.ready.first;
    if (owner === undefined || line === undefined) return undefined;
    const kept = this.#slots > sharePerFreeSlot ? 1 : 0;
    const mayBegin = fewest === 0 || fewest < sharePerFreeSlot * (this.#slots - running - kept);
    return mayBegin ? { owner, line } : undefined;
  }

  /** Puts an owner where it belongs: at the end of those that have as many slots, unless it stands there already. */
  #reorder(owner: Owner<Line>): void {
    const place = owner.ready.size === 0 ? undefined : owner.running;
    if (place === owner.place) return;
    if (owner.place !== undefined) {
      const chain = this.#bySlots.get(owner.place);
      chain?.remove(owner);
      if (chain?.size === 0) this.#bySlots.delete(owner.place);
    }
    owner.place = place;
    if (place === undefined) return;
    const chain = this.#bySlots.get(place) ?? new Chain<Owner<Line>>();
    this.#bySlots.set(place, chain);
    chain.push(owner);
  }
}
