import type { Clock } from "../../../base/clock.ts";
import { Chain, type Link } from "./chain.ts";
import { ServiceTimes } from "./service-times.ts";
import { type Owner, Turns } from "./turns.ts";
import type { LineScope, Work, WorkEnd, WorkLines } from "./work-lines.ts";

interface Line extends Link<Line> {
  readonly name: string;
  readonly queue: Chain<Waiting>;
  /** The work that runs or waits for its next attempt; the line waits for it. */
  head: Work | undefined;
  /** Set while the head waits for its next attempt. */
  retry: AbortController | undefined;
  /** In whose turn it stands: that of the first who waits. */
  owner: Owner<Line> | undefined;
  times: ServiceTimes | undefined;
}

interface Waiting extends Link<Waiting> {
  readonly work: Work;
  readonly line: Line;
}

export interface WorkLinesOptions {
  readonly clock: Clock;
  /** How many may run at a time. */
  readonly slots: number;
}

/** For what was never measured. */
const usualMs = 1_000;

/** @see WorkLines */
export function createWorkLines(options: WorkLinesOptions): WorkLines {
  const { clock, slots } = options;
  const lines = new Map<string, Line>();
  const places = new Map<string, Waiting>();
  const turns = new Turns<Line>(slots);
  const times = new ServiceTimes();
  let isOpen = false;
  // Work that holds a slot, and work that has begun, with a released slot too.
  let running = 0;
  let begun = 0;
  let waiting = 0;
  const idlers: (() => void)[] = [];
  const slotWaiters: (() => void)[] = [];
  const offers = new Set<() => void>();
  // Slots that were asked for and are not released yet.
  let asked = 0;

  function beginWhatMay(): void {
    while (isOpen && running < slots) {
      const next = turns.next(running);
      const place = next?.line.queue.first;
      if (next === undefined || place === undefined) break;
      begin(place);
    }
    askForSlots();
  }

  /** Asks suspendable work to release as many slots as ready lines want. */
  function askForSlots(): void {
    if (!isOpen) return;
    for (const release of offers) {
      if (asked >= turns.ready) return;
      asked += 1;
      offers.delete(release);
      release();
    }
  }

  function begin(place: Waiting): void {
    const { line, work } = place;
    const owner = turns.owner(work.owner);
    owner.works += 1;
    begun += 1;
    line.head = work;
    line.times ??= new ServiceTimes();
    takeOut(place);
    const now = clock.now();
    const measured = [times, owner.times, line.times].map((scope) => ({ scope, service: scope.begin(now) }));
    const slot = createSlot(owner);
    const end = (how: WorkEnd): void => {
      for (const { scope, service } of measured) scope.end(service, clock.now());
      finish(line, work, how);
      // Its line has its next turn by now, so that its owner stands behind that of the next in line.
      slot.end();
      owner.works -= 1;
      turns.forget(owner);
      beginWhatMay();
      noteSlotsFree();
      if (begun === 0) for (const resolve of idlers.splice(0)) resolve();
    };
    work.begin(slot.releaseSlot).then(end, () => end({ ended: true }));
  }

  function countSlots(owner: Owner<Line>, change: 1 | -1): void {
    running += change;
    turns.count(owner, change);
  }

  /** Creates the slot of one work, which may release it several times at once. It continues at once when all are taken back. */
  function createSlot(owner: Owner<Line>) {
    let waits = 0;
    let ended = false;
    countSlots(owner, 1);
    return {
      releaseSlot(): () => void {
        let isBack = false;
        waits += 1;
        if (waits === 1 && !ended) {
          countSlots(owner, -1);
          beginWhatMay();
          noteSlotsFree();
        }
        return () => {
          if (isBack) return;
          isBack = true;
          waits -= 1;
          if (waits === 0 && !ended) countSlots(owner, 1);
        };
      },
      end(): void {
        ended = true;
        if (waits === 0) countSlots(owner, -1);
      },
    };
  }

  function finish(line: Line, work: Work, end: WorkEnd): void {
    begun -= 1;
    asked = Math.max(0, asked - 1);
    line.head = undefined;
    // After `close` no retry is scheduled; pending work is loaded from the database at the next start.
    if ("retryAt" in end && isOpen) waitForRetry(line, work, end.retryAt);
    else advance(line);
  }

  function noteSlotsFree(): void {
    if (running === 0) for (const resolve of slotWaiters.splice(0)) resolve();
  }

  function waitForRetry(line: Line, work: Work, at: number): void {
    const retry = new AbortController();
    line.head = work;
    line.retry = retry;
    count(work, 1);
    clock.sleep(Math.max(0, at - clock.now()), retry.signal).then(
      () => {
        if (line.retry !== retry) return;
        putBack(line, work);
        advance(line);
        beginWhatMay();
      },
      () => undefined,
    );
  }

  /** Puts work whose retry is due at the front of its line, which waits for a slot like others. */
  function putBack(line: Line, work: Work): void {
    forgetRetry(line);
    const place: Waiting = { work, line };
    places.set(work.id, place);
    line.queue.unshift(place);
    count(work, 1);
  }

  function forgetRetry(line: Line): void {
    const { head, retry } = line;
    if (head === undefined || retry === undefined) return;
    retry.abort();
    line.retry = undefined;
    line.head = undefined;
    count(head, -1);
  }

  /** Counts waiting work. */
  function count(work: Work, change: 1 | -1): void {
    const owner = turns.owner(work.owner);
    waiting += change;
    owner.waiting += change;
    owner.works += change;
    turns.forget(owner);
  }

  function takeOut(place: Waiting): void {
    places.delete(place.work.id);
    place.line.queue.remove(place);
    // An owner is forgotten with its last work, so the line leaves its turns before.
    updateTurn(place.line);
    count(place.work, -1);
  }

  /** Puts a line into the turns of the owner of its first work, or into none while it waits for its head. */
  function updateTurn(line: Line): void {
    const first = line.head === undefined ? line.queue.first : undefined;
    const owner = first === undefined ? undefined : turns.owner(first.work.owner);
    if (owner === line.owner) return;
    if (line.owner !== undefined) turns.remove(line.owner, line);
    line.owner = owner;
    if (owner !== undefined) turns.add(owner, line);
  }

  function advance(line: Line): void {
    updateTurn(line);
    if (line.head === undefined && line.queue.size === 0) lines.delete(line.name);
  }

  function scopeOf({ line, owner }: LineScope): ServiceTimes | undefined {
    if (line !== undefined) return lines.get(line)?.times;
    return owner === undefined ? times : turns.find(owner)?.times;
  }

  return {
    join(work) {
      let line = lines.get(work.line);
      if (line === undefined) {
        line = {
          name: work.line,
          queue: new Chain(),
          head: undefined,
          retry: undefined,
          owner: undefined,
          times: undefined,
        };
        lines.set(work.line, line);
      }
      const place: Waiting = { work, line };
      places.set(work.id, place);
      line.queue.push(place);
      count(work, 1);
      advance(line);
      beginWhatMay();
    },
    leave({ id, line: name }) {
      const line = lines.get(name);
      if (line === undefined) return false;
      const place = places.get(id);
      if (line.retry !== undefined && line.head?.id === id) forgetRetry(line);
      else if (place?.line === line) takeOut(place);
      else return false;
      advance(line);
      beginWhatMay();
      return true;
    },
    onSlotWanted(release) {
      offers.add(release);
      askForSlots();
      return () => void offers.delete(release);
    },
    waiting({ line: name, owner } = {}) {
      if (owner !== undefined) return turns.find(owner)?.waiting ?? 0;
      if (name === undefined) return waiting;
      const line = lines.get(name);
      return line === undefined ? 0 : line.queue.size + (line.retry === undefined ? 0 : 1);
    },
    retryDelay(scope) {
      if (!isOpen) return undefined;
      return scopeOf(scope)?.retryDelay(clock.now(), times.meanMs ?? usualMs);
    },
    open() {
      isOpen = true;
      beginWhatMay();
    },
    close(closing) {
      isOpen = false;
      for (const line of [...lines.values()]) {
        if (line.retry !== undefined && line.head !== undefined) putBack(line, line.head);
        if (closing?.clear === true) {
          for (const place of [...line.queue]) {
            takeOut(place);
            place.work.forget?.();
          }
        }
        advance(line);
      }
    },
    slotsFree: () =>
      running === 0
        ? Promise.resolve()
        : new Promise((resolve) => {
            slotWaiters.push(resolve);
          }),
    idle: () =>
      begun === 0
        ? Promise.resolve()
        : new Promise((resolve) => {
            idlers.push(resolve);
          }),
  };
}
