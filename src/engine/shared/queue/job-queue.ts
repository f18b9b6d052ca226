import { type Clock, elapsedOf } from "../../../base/clock.ts";
import type { Job, JobEnd, LineScope } from "./job.ts";
import { Chain, type Link, type Owner, type Service, ServiceTimes, Turns } from "./owners.ts";

interface Line extends Link<Line> {
  readonly name: string;
  readonly queue: Chain<Waiting>;
  /** The job that runs or waits for its next attempt; the line waits for it. */
  head: Job | undefined;
  /** Set while the head waits for its next attempt. */
  retry: AbortController | undefined;
  /** The owner of the line's first waiting job: the line takes its turns. */
  owner: Owner<Line> | undefined;
  times: ServiceTimes | undefined;
}

interface Waiting extends Link<Waiting> {
  readonly job: Job;
  readonly line: Line;
  readonly owner: Owner<Line>;
}

/** The slot of a job that has begun. */
interface Slot {
  /** The number of its parts that have released it. */
  waits: number;
  ended: boolean;
}

export interface JobQueueOptions {
  readonly clock: Clock;
  /** How many jobs can run at a time. */
  readonly slots: number;
  /** Whether heartbeats are late, because this process is too busy or the store is slow: then no job begins. */
  readonly isLate?: () => boolean;
}

/** The pause before a process that is late tries again to begin jobs. */
const lateMs = 100;

const none: readonly never[] = [];

/** The assumed duration of a job before any was measured. */
const usualMs = 1_000;

/**
 * The queue of an engine. Jobs of one line run one at a time; all jobs share a number of slots. Owners with enough jobs get
 * equal shares of the slots; the lines of one owner take turns.
 */
export class JobQueue {
  readonly #clock: Clock;
  readonly #slots: number;
  readonly #isLate: (() => boolean) | undefined;
  readonly #lines = new Map<string, Line>();
  readonly #positions = new Map<string, Waiting>();
  readonly #turns: Turns<Line>;
  readonly #times = new ServiceTimes();
  readonly #idlers: (() => void)[] = [];
  readonly #slotWaiters: (() => void)[] = [];
  readonly #offers = new Set<() => void>();
  #isOpen = false;
  #isPaused = false;
  /** Jobs that hold a slot. */
  #running = 0;
  /** Jobs that have begun, including those that have released their slot. */
  #begun = 0;
  #waiting = 0;
  /** The jobs among them that can join. */
  #joining = 0;
  /** Slots that were requested from suspendable work and are not released yet. */
  #requested = 0;

  constructor({ clock, slots, isLate }: JobQueueOptions) {
    this.#clock = clock;
    this.#slots = slots;
    this.#isLate = isLate;
    this.#turns = new Turns(slots);
  }

  /** Adds a job at the end of its line. Nothing begins before `open`. */
  join(job: Job): void {
    let line = this.#lines.get(job.line);
    if (line === undefined) {
      line = {
        name: job.line,
        queue: new Chain(),
        head: undefined,
        retry: undefined,
        owner: undefined,
        times: undefined,
      };
      this.#lines.set(job.line, line);
    }
    const waiting: Waiting = { job, line, owner: this.#turns.owner(job.owner) };
    this.#positions.set(job.id, waiting);
    line.queue.push(waiting);
    if (job.joins === true) this.#joining += 1;
    this.#count(waiting.owner, 1);
    this.#advance(line);
    this.#beginWhatMay();
  }

  /** Removes a job that waits, also for its next attempt. False for a job that runs or is in no line. */
  leave({ id, line: name }: Pick<Job, "id" | "line">): boolean {
    const line = this.#lines.get(name);
    if (line === undefined) return false;
    const waiting = this.#positions.get(id);
    if (line.retry !== undefined && line.head?.id === id) this.#forgetRetry(line);
    else if (waiting?.line === line) this.#takeOut(waiting);
    else return false;
    this.#advance(line);
    this.#beginWhatMay();
    return true;
  }

  /** Lets a job that waits for its next attempt begin as soon as it gets a slot. */
  hasten({ id, line: name }: Pick<Job, "id" | "line">): void {
    const line = this.#lines.get(name);
    if (line?.retry === undefined || line.head?.id !== id) return;
    this.#putBack(line, line.head);
    this.#advance(line);
    this.#beginWhatMay();
  }

  /** Whether a job waits in its line, also for its next attempt. */
  isWaiting({ id, line: name }: Pick<Job, "id" | "line">): boolean {
    const line = this.#lines.get(name);
    return this.#positions.has(id) || (line?.retry !== undefined && line.head?.id === id);
  }

  /** The ids of an owner's jobs that wait in a line and can join its work, in their order, without those that wait for their next attempt. */
  joining(scope: () => Required<LineScope>): readonly string[] {
    if (this.#joining === 0) return none;
    const { line, owner } = scope();
    const waiting = [...(this.#lines.get(line)?.queue ?? none)];
    return waiting.flatMap(({ job }) => (job.joins === true && job.owner === owner ? [job.id] : []));
  }

  /** Whether a job waits in its line, or runs under the current lease. */
  has({ id, line }: Pick<Job, "id" | "line">): boolean {
    const head = this.#lines.get(line)?.head;
    return this.#positions.has(id) || (head?.id === id && head.isStale?.() !== true);
  }

  /**
   * Registers running work that can be suspended: `release` is called once other jobs wait for its slot. Returns the
   * function that unregisters it.
   */
  onSlotWanted(release: () => void): () => void {
    this.#offers.add(release);
    this.#askForSlots();
    return () => void this.#offers.delete(release);
  }

  /** The number of waiting jobs; running jobs are not counted. */
  waiting({ line: name, owner }: LineScope = {}): number {
    if (owner !== undefined) return this.#turns.find(owner)?.waiting ?? 0;
    if (name === undefined) return this.#waiting;
    const line = this.#lines.get(name);
    return line === undefined ? 0 : line.queue.size + (line.retry === undefined ? 0 : 1);
  }

  /**
   * Milliseconds after which a refused sender should retry, estimated from the durations of jobs and the number of senders
   * that were refused before. `undefined` while another process does the work.
   */
  retryDelay(scope: LineScope): number | undefined {
    if (!this.#isOpen) return undefined;
    const expected = { usualMs: this.#times.meanMs ?? usualMs, waiting: this.waiting(scope) };
    return this.#timesOf(scope)?.retryDelay(elapsedOf(this.#clock), expected);
  }

  open(): void {
    this.#isOpen = true;
    this.#beginWhatMay();
  }

  /** Begins no more jobs. With `clear`, waiting jobs are forgotten: the next start loads them from the database. */
  close({ clear = false }: { readonly clear?: boolean } = {}): void {
    this.#isOpen = false;
    for (const line of [...this.#lines.values()]) {
      if (line.retry !== undefined && line.head !== undefined) this.#putBack(line, line.head);
      if (clear) this.#forgetWaiting(line);
      this.#advance(line);
    }
  }

  /** Forgets waiting jobs, also those that wait for their next attempt: another process does them now. */
  forget(isGone: (job: Job) => boolean): void {
    for (const line of [...this.#lines.values()]) {
      const { head } = line;
      if (line.retry !== undefined && head !== undefined && isGone(head)) this.#putBack(line, head);
      this.#forgetWaiting(line, isGone);
      this.#advance(line);
    }
    this.#beginWhatMay();
  }

  /** The number of free slots. */
  get free(): number {
    return this.#slots - this.#running;
  }

  /** Whether no job holds a slot and no job could begin; jobs can still wait for an approval or their next attempt. */
  get isAtRest(): boolean {
    return this.#running === 0 && this.#turns.ready === 0;
  }

  /** Resolves once no job holds a slot. */
  async slotsFree(): Promise<void> {
    if (this.#running > 0) await new Promise<void>((resolve) => this.#slotWaiters.push(resolve));
  }

  /** Resolves once no job runs, including those that have released their slot. */
  async idle(): Promise<void> {
    if (this.#begun > 0) await new Promise<void>((resolve) => this.#idlers.push(resolve));
  }

  #beginWhatMay(): void {
    while (this.#isOpen && this.#running < this.#slots) {
      const next = this.#turns.next(this.#running);
      const waiting = next?.line.queue.first;
      if (next === undefined || waiting === undefined) break;
      if (this.#isLate?.() === true) {
        this.#pause();
        return;
      }
      this.#begin(waiting);
    }
    this.#askForSlots();
  }

  #pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    void this.#clock.sleep(lateMs).then(() => {
      this.#isPaused = false;
      this.#beginWhatMay();
    });
  }

  /** Asks suspendable work to release one slot per ready line. */
  #askForSlots(): void {
    if (!this.#isOpen) return;
    for (const release of this.#offers) {
      if (this.#requested >= this.#turns.ready) return;
      this.#requested += 1;
      this.#offers.delete(release);
      release();
    }
  }

  #begin(waiting: Waiting): void {
    const { line, job, owner } = waiting;
    owner.works += 1;
    this.#begun += 1;
    line.head = job;
    line.times ??= new ServiceTimes();
    this.#takeOut(waiting);
    const now = elapsedOf(this.#clock);
    const scopes = [this.#times, owner.times, line.times];
    const services: Service[] = [];
    for (const scope of scopes) services.push(scope.begin(now));
    this.#countSlots(owner, 1);
    const slot: Slot = { waits: 0, ended: false };
    const end = (how: JobEnd): void => {
      const endedAt = elapsedOf(this.#clock);
      for (const [at, service] of services.entries()) scopes[at]?.end(service, endedAt);
      this.#finish(line, job, how);
      // `#finish` has given the line its next turn, so this owner comes after the owner of the next job.
      slot.ended = true;
      if (slot.waits === 0) this.#countSlots(owner, -1);
      owner.works -= 1;
      this.#turns.forget(owner);
      this.#beginWhatMay();
      this.#noteSlotsFree();
      if (this.#begun === 0) for (const resolve of this.#idlers.splice(0)) resolve();
    };
    job.begin(() => this.#releaseSlot(slot, waiting)).then(end, () => end({ ended: true }));
  }

  #countSlots(owner: Owner<Line>, change: 1 | -1): void {
    this.#running += change;
    owner.running += change;
    this.#turns.reorder(owner);
  }

  /**
   * Releases the slot of a job; the result takes it back. Several parts of the job can release it at the same time; the slot counts as
   * used again once all of them have taken it back, even if all slots are in use by then.
   */
  #releaseSlot(slot: Slot, { line, job, owner }: Waiting): () => void {
    let isBack = false;
    slot.waits += 1;
    if (slot.waits === 1 && !slot.ended) {
      this.#countSlots(owner, -1);
      this.#leaveLine(line, job);
      this.#beginWhatMay();
      this.#noteSlotsFree();
    }
    return () => {
      if (isBack) return;
      isBack = true;
      slot.waits -= 1;
      if (slot.waits === 0 && !slot.ended) this.#countSlots(owner, 1);
    };
  }

  #finish(line: Line, job: Job, end: JobEnd): void {
    this.#begun -= 1;
    this.#requested = Math.max(0, this.#requested - 1);
    // After `close` no retry is scheduled; pending work is loaded from the database at the next start.
    const mayRetry = "retryAt" in end && this.#isOpen;
    if (line.head !== job) {
      if (mayRetry) this.join(job);
      return;
    }
    line.head = undefined;
    if (mayRetry) this.#waitForRetry(line, job, end.retryAt);
    else this.#advance(line);
  }

  /** Lets the next job of a line begin while this one waits. */
  #leaveLine(line: Line, job: Job): void {
    if (job.leavesLine !== true || line.head !== job) return;
    line.head = undefined;
    this.#advance(line);
  }

  #noteSlotsFree(): void {
    if (this.#running === 0) for (const resolve of this.#slotWaiters.splice(0)) resolve();
  }

  #waitForRetry(line: Line, job: Job, at: number): void {
    const retry = new AbortController();
    line.head = job;
    line.retry = retry;
    this.#count(this.#turns.owner(job.owner), 1);
    this.#clock.sleep(Math.max(0, at - this.#clock.now()), retry.signal).then(
      () => {
        if (line.retry === retry) this.hasten(job);
      },
      () => undefined,
    );
  }

  /** Puts a job whose retry is due at the front of its line, which then waits for a slot like other lines. */
  #putBack(line: Line, job: Job): void {
    this.#forgetRetry(line);
    const waiting: Waiting = { job, line, owner: this.#turns.owner(job.owner) };
    this.#positions.set(job.id, waiting);
    line.queue.push(waiting, line.queue.first);
    if (job.joins === true) this.#joining += 1;
    this.#count(waiting.owner, 1);
  }

  #forgetRetry(line: Line): void {
    const { head, retry } = line;
    if (head === undefined || retry === undefined) return;
    retry.abort();
    line.retry = undefined;
    line.head = undefined;
    this.#count(this.#turns.owner(head.owner), -1);
  }

  #forgetWaiting(line: Line, isGone: (job: Job) => boolean = () => true): void {
    for (const waiting of [...line.queue]) {
      if (!isGone(waiting.job)) continue;
      this.#takeOut(waiting);
      waiting.job.forget?.();
    }
  }

  /** Counts the waiting jobs of an owner. */
  #count(owner: Owner<Line>, change: 1 | -1): void {
    this.#waiting += change;
    owner.waiting += change;
    owner.works += change;
    this.#turns.forget(owner);
  }

  #takeOut(waiting: Waiting): void {
    this.#positions.delete(waiting.job.id);
    if (waiting.job.joins === true) this.#joining -= 1;
    waiting.line.queue.remove(waiting);
    // An owner is forgotten with its last job, so the line must leave the owner's turns first.
    this.#updateTurn(waiting.line);
    this.#count(waiting.owner, -1);
  }

  /** Adds a line to the turns of its first job's owner; removes it from all turns while its head runs or waits. */
  #updateTurn(line: Line): void {
    const owner = line.head === undefined ? line.queue.first?.owner : undefined;
    if (owner === line.owner) return;
    if (line.owner !== undefined) this.#turns.remove(line.owner, line);
    line.owner = owner;
    if (owner !== undefined) this.#turns.add(owner, line);
  }

  #advance(line: Line): void {
    this.#updateTurn(line);
    if (line.head === undefined && line.queue.size === 0) this.#lines.delete(line.name);
  }

  #timesOf({ line, owner }: LineScope): ServiceTimes | undefined {
    if (line !== undefined) return this.#lines.get(line)?.times;
    return owner === undefined ? this.#times : this.#turns.find(owner)?.times;
  }
}
