import type { Clock } from "../../../base/clock.ts";
import type { Work, WorkEnd, WorkLines } from "./work-lines.ts";

interface Line {
  readonly name: string;
  readonly queue: Work[];
  /** What runs, or waits for its next attempt: the line waits for it. */
  head: Work | undefined;
  /** Set while the head waits for its next attempt. */
  retry: AbortController | undefined;
}

export interface WorkLinesOptions {
  readonly clock: Clock;
  /** How many may run at a time. */
  readonly slots: number;
}

/** @see WorkLines */
export function createWorkLines(options: WorkLinesOptions): WorkLines {
  const { clock, slots } = options;
  const lines = new Map<string, Line>();
  // Those that could begin something. A Set keeps the order of arrival: who had a turn goes to its end.
  const ready = new Set<Line>();
  let isOpen = false;
  // What has a slot, and what is at work, those that stand aside included.
  let running = 0;
  let begun = 0;
  let waiting = 0;
  const idlers: (() => void)[] = [];
  const calmers: (() => void)[] = [];
  const offers = new Set<() => void>();
  // Slots that were asked for and have not been given back yet.
  let asked = 0;

  function beginWhatMay(): void {
    while (isOpen && running < slots) {
      const [line] = ready;
      if (line === undefined) return;
      ready.delete(line);
      const work = line.queue.shift();
      if (work === undefined) continue;
      waiting -= 1;
      begin(line, work);
    }
    askForSlots();
  }

  /** What could begin, had it a slot, is given those that were offered. */
  function askForSlots(): void {
    if (!isOpen) return;
    for (const giveBack of offers) {
      if (asked >= ready.size) return;
      asked += 1;
      offers.delete(giveBack);
      giveBack();
    }
  }

  function begin(line: Line, work: Work): void {
    line.head = work;
    running += 1;
    begun += 1;
    const slot = createSlot();
    const end = (how: WorkEnd): void => {
      slot.end();
      finish(line, work, how);
    };
    work.begin(slot.standAside).then(end, () => end({ ended: true }));
  }

  /** Of one work, which may wait for several things at a time. It goes on at once when it is back. */
  function createSlot() {
    let waits = 0;
    let ended = false;
    return {
      standAside(): () => void {
        let isBack = false;
        waits += 1;
        if (waits === 1 && !ended) {
          running -= 1;
          beginWhatMay();
          noteCalm();
        }
        return () => {
          if (isBack) return;
          isBack = true;
          waits -= 1;
          if (waits === 0 && !ended) running += 1;
        };
      },
      end(): void {
        ended = true;
        if (waits === 0) running -= 1;
      },
    };
  }

  function finish(line: Line, work: Work, end: WorkEnd): void {
    begun -= 1;
    asked = Math.max(0, asked - 1);
    line.head = undefined;
    // A closed house keeps no timers: its work is taken up from the database.
    if ("retryAt" in end && isOpen) waitForRetry(line, work, end.retryAt);
    else goOn(line);
    beginWhatMay();
    noteCalm();
    if (begun === 0) for (const resolve of idlers.splice(0)) resolve();
  }

  function noteCalm(): void {
    if (running === 0) for (const resolve of calmers.splice(0)) resolve();
  }

  function waitForRetry(line: Line, work: Work, at: number): void {
    const retry = new AbortController();
    line.head = work;
    line.retry = retry;
    waiting += 1;
    clock.sleep(Math.max(0, at - clock.now()), retry.signal).then(
      () => {
        if (line.retry !== retry) return;
        putBack(line, work);
        goOn(line);
        beginWhatMay();
      },
      () => undefined,
    );
  }

  /** Its time has come: it is the first of its line again, which waits for a slot like others. */
  function putBack(line: Line, work: Work): void {
    line.retry = undefined;
    line.head = undefined;
    line.queue.unshift(work);
  }

  function goOn(line: Line): void {
    if (line.head !== undefined) return;
    if (line.queue.length > 0) ready.add(line);
    else {
      ready.delete(line);
      lines.delete(line.name);
    }
  }

  function forgetRetry(line: Line): void {
    line.retry?.abort();
    line.retry = undefined;
    line.head = undefined;
    waiting -= 1;
  }

  return {
    join(work) {
      let line = lines.get(work.line);
      if (line === undefined) {
        line = { name: work.line, queue: [], head: undefined, retry: undefined };
        lines.set(work.line, line);
      }
      line.queue.push(work);
      waiting += 1;
      goOn(line);
      beginWhatMay();
    },
    leave({ id, line: name }) {
      const line = lines.get(name);
      if (line === undefined) return false;
      if (line.retry !== undefined && line.head?.id === id) forgetRetry(line);
      else {
        const index = line.queue.findIndex((work) => work.id === id);
        if (index < 0) return false;
        line.queue.splice(index, 1);
        waiting -= 1;
      }
      goOn(line);
      beginWhatMay();
      return true;
    },
    offerSlot(giveBack) {
      offers.add(giveBack);
      askForSlots();
      return () => void offers.delete(giveBack);
    },
    waiting(name) {
      if (name === undefined) return waiting;
      const line = lines.get(name);
      return line === undefined ? 0 : line.queue.length + (line.retry === undefined ? 0 : 1);
    },
    open() {
      isOpen = true;
      beginWhatMay();
    },
    close(closing) {
      isOpen = false;
      for (const line of [...lines.values()]) {
        if (line.retry !== undefined) {
          const work = line.head;
          forgetRetry(line);
          if (work !== undefined) {
            line.queue.unshift(work);
            waiting += 1;
          }
        }
        if (closing?.clear === true) {
          waiting -= line.queue.length;
          for (const work of line.queue.splice(0)) work.forget?.();
        }
        goOn(line);
      }
    },
    calm: () =>
      running === 0
        ? Promise.resolve()
        : new Promise((resolve) => {
            calmers.push(resolve);
          }),
    idle: () =>
      begun === 0
        ? Promise.resolve()
        : new Promise((resolve) => {
            idlers.push(resolve);
          }),
  };
}
