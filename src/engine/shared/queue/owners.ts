import type { AdmitRequest, RunRequest } from "../../contract.ts";

/** The kinds of owners, which have shares of the slots and of the queue. An owner's name begins with its kind and a slash. */
export type OwnerKind = "principal" | "instance" | "workflow";

/** The owner of an input: its sender, or its instance when requests are not authenticated. */
export function ownerOfInput({
  principal,
  agent,
  instance_id,
}: Pick<AdmitRequest, "principal" | "agent" | "instance_id">): string {
  return principal === undefined ? `instance/${agent}/${instance_id}` : toOwner(principal);
}

/** The owner of a run: its starter, or its workflow when requests are not authenticated. */
export function ownerOfRun({ principal, workflow }: Pick<RunRequest, "principal" | "workflow">): string {
  return principal === undefined ? `workflow/${workflow}` : toOwner(principal);
}

/** The principal of an owner; none for an instance or a workflow. */
export function principalOf(owner: string): { readonly principal?: string } {
  return owner.startsWith(principalPrefix) ? { principal: owner.slice(principalPrefix.length) } : {};
}

export function kindOf(owner: string): OwnerKind {
  return owner.slice(0, owner.indexOf("/")) as OwnerKind;
}

const principalPrefix = "principal/";

function toOwner(principal: string): string {
  return `${principalPrefix}${principal}`;
}

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

/** How much a new duration counts beside those that were measured before. */
const weight = 0.2;
/** No estimate is worth more: what waits for a person may take days. */
const longestMs = 600_000;

/** One work from its begin to its end. */
export interface Service extends Link<Service> {
  readonly begunAt: number;
}

/**
 * How fast a line moves: how long its works take, and how long those at work have been at it. From that follows when
 * there will be room in it again. Times come from a clock that never jumps.
 */
export class ServiceTimes {
  readonly #running = new Chain<Service>();
  #meanMs: number | undefined;
  /** Senders who were told to come back, and have not been let in yet. */
  #turnedAway = 0;

  get meanMs(): number | undefined {
    return this.#meanMs;
  }

  begin(now: number): Service {
    const service: Service = { begunAt: now };
    this.#running.push(service);
    if (this.#turnedAway > 0) this.#turnedAway -= 1;
    return service;
  }

  end(service: Service, now: number): void {
    this.#running.remove(service);
    const ms = now - service.begunAt;
    this.#meanMs = this.#meanMs === undefined ? ms : this.#meanMs * (1 - weight) + ms * weight;
  }

  /** In how many ms there is room for one more, behind those who were told to come back before. `usualMs`: for what was never measured. */
  retryDelay(now: number, usualMs: number): number {
    const place = this.#turnedAway;
    this.#turnedAway += 1;
    const abreast = Math.max(1, this.#running.size);
    const meanMs = this.#meanMs ?? usualMs;
    // The work that began first ends first; then as many again, and so on.
    let ahead = place % abreast;
    let untilEndMs = meanMs;
    for (const { begunAt } of this.#running) {
      untilEndMs = meanMs - (now - begunAt);
      if (ahead === 0) break;
      ahead -= 1;
    }
    // One that takes longer than is usual may take as long again.
    const nextMs = untilEndMs > 0 ? untilEndMs : Math.max(meanMs, -untilEndMs) / abreast;
    return Math.min(longestMs, Math.floor(place / abreast) * meanMs + nextMs);
  }
}

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
