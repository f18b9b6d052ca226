/** Work that may be given up after a time. */
export interface Timed {
  /** Sets the timer. */
  arm(): void;
  /** Its neighbours in the list of work without a timer. */
  earlier: Timed | undefined;
  later: Timed | undefined;
}

/** The newest work without a timer. A list and not a set: the old tables of a set would keep work that has ended. */
let newest: Timed | undefined;
let isScheduled = false;

/** Sets the timer of work that has not ended by the next turn of the event loop: most work ends earlier, and a timer costs more. */
export function armLater(work: Timed): void {
  if (isListed(work)) return;
  work.earlier = newest;
  if (newest !== undefined) newest.later = work;
  newest = work;
  if (isScheduled) return;
  isScheduled = true;
  setImmediate(armAll);
}

/** Called when work ends. */
export function disarm(work: Timed): void {
  if (!isListed(work)) return;
  const { earlier, later } = work;
  if (later === undefined) newest = earlier;
  else later.earlier = earlier;
  if (earlier !== undefined) earlier.later = later;
  work.earlier = undefined;
  work.later = undefined;
}

function isListed(work: Timed): boolean {
  return work === newest || work.later !== undefined;
}

function armAll(): void {
  isScheduled = false;
  while (newest !== undefined) {
    const work = newest;
    disarm(work);
    work.arm();
  }
}
