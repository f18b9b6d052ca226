import type { SessionKey } from "../../../protocol/session-entry.ts";
import { sessionName } from "../../../protocol/session-name.ts";
import type { AdmitRequest, RunRequest } from "../../contract.ts";

/** The kinds of owners. Owners have shares of the slots and of the queue. An owner's name begins with its kind and a slash. */
export type OwnerKind = "principal" | "instance" | "workflow";

/** The owner of an input: its sender, or its instance if requests are not authenticated. */
export function ownerOfInput({
  principal,
  agent,
  instance_id,
}: Pick<AdmitRequest, "principal" | "agent" | "instance_id">): string {
  return principal === undefined ? `instance/${agent}/${instance_id}` : toOwner(principal);
}

/** The owner of a run: the principal that started it, or its workflow if requests are not authenticated. */
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

/** The name of a session's line. */
export function lineOf(key: SessionKey): string {
  return `session/${sessionName(key)}`;
}

const principalPrefix = "principal/";

function toOwner(principal: string): string {
  return `${principalPrefix}${principal}`;
}

/** An owner of queued work: a principal, or the instance or workflow that counts as one. */
export interface Owner<Line extends Link<Line>> extends Link<Owner<Line>> {
  readonly name: string;
  /** Its lines whose first job could begin, in the order of their turns. */
  readonly ready: Chain<Line>;
  readonly times: ServiceTimes;
  /** The number of slots that the owner uses. */
  running: number;
  /** The number of slots under which `Turns` lists the owner; `undefined` if it is not listed. */
  listedSlots: number | undefined;
  /** The number of its jobs that wait or run; the owner is kept while there is one. */
  works: number;
  waiting: number;
}

/**
 * An owner can use another slot while it uses fewer than this number times the free slots, and the last free slot is
 * reserved for an owner without any: of 256 slots one owner gets at most 224, two get 119 each. So a new owner begins at
 * once, however much work the others have. Of fewer than eight slots one owner can use all.
 */
const sharePerFreeSlot = 7;

/**
 * Picks the next line: a line of the owner that uses the fewest slots; among several such owners, of the one that has
 * waited longest. The lines of one owner take turns. The cost does not depend on the number of waiting lines and owners.
 */
export class Turns<Line extends Link<Line>> {
  readonly #owners = new Map<string, Owner<Line>>();
  /** Owners with ready lines, by the number of slots that each uses. */
  readonly #bySlots = new Map<number, Chain<Owner<Line>>>();
  readonly #slots: number;
  /** The number of lines whose first job could begin. */
  ready = 0;

  constructor(slots: number) {
    this.#slots = slots;
  }

  find(name: string): Owner<Line> | undefined {
    return this.#owners.get(name);
  }

  /** Returns the owner, which is created if it is new. It is kept until `forget`. */
  owner(name: string): Owner<Line> {
    let owner = this.#owners.get(name);
    if (owner === undefined) {
      owner = {
        name,
        ready: new Chain(),
        times: new ServiceTimes(),
        running: 0,
        listedSlots: undefined,
        works: 0,
        waiting: 0,
      };
      this.#owners.set(name, owner);
    }
    return owner;
  }

  /** Forgets an owner without waiting or running jobs. */
  forget(owner: Owner<Line>): void {
    if (owner.works === 0) this.#owners.delete(owner.name);
  }

  add(owner: Owner<Line>, line: Line): void {
    owner.ready.push(line);
    this.ready += 1;
    this.reorder(owner);
  }

  remove(owner: Owner<Line>, line: Line): void {
    if (!owner.ready.remove(line)) return;
    this.ready -= 1;
    this.reorder(owner);
  }

  /** The line whose turn it is while `running` slots are in use; `undefined` if no line may begin. */
  next(running: number): { readonly owner: Owner<Line>; readonly line: Line } | undefined {
    let fewest = Number.POSITIVE_INFINITY;
    // The keys differ, and their sum is at most the number of slots, so there are few.
    for (const slots of this.#bySlots.keys()) fewest = Math.min(fewest, slots);
    const owner = this.#bySlots.get(fewest)?.first;
    const line = owner?.ready.first;
    if (owner === undefined || line === undefined) return undefined;
    const reserved = this.#slots > sharePerFreeSlot ? 1 : 0;
    const mayBegin = fewest === 0 || fewest < sharePerFreeSlot * (this.#slots - running - reserved);
    return mayBegin ? { owner, line } : undefined;
  }

  /** Lists an owner at the end of the owners that use as many slots, unless it is listed there already. Call it when `running` changes. */
  reorder(owner: Owner<Line>): void {
    const slots = owner.ready.size === 0 ? undefined : owner.running;
    if (slots === owner.listedSlots) return;
    if (owner.listedSlots !== undefined) {
      const chain = this.#bySlots.get(owner.listedSlots);
      chain?.remove(owner);
      if (chain?.size === 0) this.#bySlots.delete(owner.listedSlots);
    }
    owner.listedSlots = slots;
    if (slots === undefined) return;
    const chain = this.#bySlots.get(slots) ?? new Chain<Owner<Line>>();
    this.#bySlots.set(slots, chain);
    chain.push(owner);
  }
}

/** The weight of a new duration in the running mean. */
const weight = 0.2;
/** The longest estimate: work that waits for a person can take days. */
const longestMs = 600_000;

/** One running job. */
export interface Service extends Link<Service> {
  readonly begunAt: number;
}

/**
 * Measures how long jobs take and how long the current ones have been running, and estimates when the line has room again.
 * Times come from a clock that never jumps.
 */
export class ServiceTimes {
  readonly #running = new Chain<Service>();
  meanMs: number | undefined;
  /** Senders that were refused and whose jobs have not begun since. */
  #turnedAway = 0;

  begin(now: number): Service {
    const service: Service = { begunAt: now };
    this.#running.push(service);
    if (this.#turnedAway > 0) this.#turnedAway -= 1;
    return service;
  }

  end(service: Service, now: number): void {
    this.#running.remove(service);
    const ms = now - service.begunAt;
    this.meanMs = this.meanMs === undefined ? ms : this.meanMs * (1 - weight) + ms * weight;
  }

  /**
   * Milliseconds until there is room for one more job, after those of senders refused before. Once the `waiting` jobs have
   * begun, there is room for all of them. `usualMs`: the mean while none is measured.
   */
  retryDelay(now: number, { usualMs, waiting }: { usualMs: number; waiting: number }): number {
    const jobsBefore = Math.min(this.#turnedAway, waiting);
    this.#turnedAway += 1;
    const abreast = Math.max(1, this.#running.size);
    const meanMs = this.meanMs ?? usualMs;
    // The job that began first ends first; after one mean duration, the same number of jobs ends again.
    let ahead = jobsBefore % abreast;
    let untilEndMs = meanMs;
    for (const { begunAt } of this.#running) {
      untilEndMs = meanMs - (now - begunAt);
      if (ahead === 0) break;
      ahead -= 1;
    }
    // A job that takes longer than usual can take as long again.
    const nextMs = untilEndMs > 0 ? untilEndMs : Math.max(meanMs, -untilEndMs) / abreast;
    return Math.min(longestMs, Math.floor(jobsBefore / abreast) * meanMs + nextMs);
  }
}

/** The fields of a member of a chain. A member is in one chain at a time, or in none. */
export interface Link<Item> {
  chain?: object | undefined;
  before?: Item | undefined;
  after?: Item | undefined;
}

/**
 * A linked list: members can leave from anywhere, and the cost of a call does not depend on the length. Neither an array
 * nor a Set has this property: reading the first member of a Set passes over all deleted ones.
 */
export class Chain<Item extends Link<Item>> implements Iterable<Item> {
  first: Item | undefined;
  size = 0;
  #last: Item | undefined;

  /** Adds an item at the end, or before another one; it must be in no chain. */
  push(item: Item, after?: Item): void {
    const before = after === undefined ? this.#last : after.before;
    item.chain = this;
    item.before = before;
    item.after = after;
    if (before === undefined) this.first = item;
    else before.after = item;
    if (after === undefined) this.#last = item;
    else after.before = item;
    this.size += 1;
  }

  /** Removes an item; false if it is not in this chain. */
  remove(item: Item): boolean {
    if (item.chain !== this) return false;
    const { before, after } = item;
    if (before === undefined) this.first = after;
    else before.after = after;
    if (after === undefined) this.#last = before;
    else after.before = before;
    item.chain = undefined;
    item.before = undefined;
    item.after = undefined;
    this.size -= 1;
    return true;
  }

  *[Symbol.iterator](): Generator<Item, void, undefined> {
    for (let item = this.first; item !== undefined; item = item.after) yield item;
  }
}
