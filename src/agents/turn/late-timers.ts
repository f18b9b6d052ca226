/** Work that may be given up after a time. */
export interface Timed {
  /** Sets the timer. */
  arm(): void;
}

const unarmed = new Set<Timed>();
let isScheduled = false;

/** Sets the timer of work that has not ended by the next turn of the event loop: most work ends earlier, and a timer costs more. */
export function armLater(work: Timed): void {
  unarmed.add(work);
  if (isScheduled) return;
  isScheduled = true;
  setImmediate(armAll);
}

/** Called when work ends. */
export function disarm(work: Timed): void {
  unarmed.delete(work);
}

function armAll(): void {
  isScheduled = false;
  const due = [...unarmed];
  unarmed.clear();
  for (const work of due) work.arm();
}
