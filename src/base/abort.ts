import { type Clock, systemClock } from "./clock.ts";

/**
 * Calls the listener with the signal's reason when the signal fires, or at once if it has already fired. Returns a
 * function that removes the listener. Without a signal, both functions do nothing.
 */
export function onAbort(signal: AbortSignal | undefined, listener: (reason: unknown) => void): () => void {
  if (signal === undefined) return () => undefined;
  const call = (): void => listener(signal.reason);
  if (signal.aborted) call();
  else signal.addEventListener("abort", call, { once: true });
  return () => signal.removeEventListener("abort", call);
}

/**
 * Resolves with the result of `work`, or rejects with the signal's reason if the signal fires first. The work then
 * continues, and the caller need not handle its later rejection.
 */
export async function raceSignal<Value>(
  work: PromiseLike<Value>,
  signal: AbortSignal | undefined,
): Promise<Value> {
  const aborted = Promise.withResolvers<never>();
  const stop = onAbort(signal, aborted.reject);
  try {
    return await Promise.race([aborted.promise, work]);
  } finally {
    stop();
  }
}

export interface LinkedSignals {
  /** Fires with the first source that fires, with that source's reason. */
  readonly signal: AbortSignal;
  /** Fires `signal`, and no source. */
  abort(reason: unknown): void;
  /** Removes the listeners from the sources. The caller calls it when the work has ended. */
  unlink(): void;
}

/**
 * Creates one signal for work that can be stopped by several others. It replaces `AbortSignal.any`, whose signals
 * stay in memory, once they have a listener, as long as their sources: the sources of an engine or a pool live as
 * long as the process.
 *
 * `caller` is another source, which lives no longer than the work: it gets a listener of its own.
 */
export function linkSignals(
  sources: readonly (AbortSignal | undefined)[],
  caller?: AbortSignal,
): LinkedSignals {
  const own = new AbortController();
  const stop = (reason: unknown): void => own.abort(reason);
  const leaveCaller = caller && onAbort(caller, stop);
  for (const source of sources) {
    if (source === undefined) continue;
    if (source.aborted) own.abort(source.reason);
    else stopsOf(source).add(stop);
  }
  return {
    signal: own.signal,
    abort: stop,
    unlink() {
      leaveCaller?.();
      for (const source of sources) if (source !== undefined) stopping.get(source)?.delete(stop);
    },
  };
}

/** The stop functions of each source. A source has one listener, however many signals are linked to it. */
const stopping = new WeakMap<AbortSignal, Set<(reason: unknown) => void>>();

function stopsOf(source: AbortSignal): Set<(reason: unknown) => void> {
  const known = stopping.get(source);
  if (known !== undefined) return known;
  const stops = new Set<(reason: unknown) => void>();
  stopping.set(source, stops);
  onAbort(source, (reason) => {
    for (const stop of stops) stop(reason);
  });
  return stops;
}

/** The reason that cancels a timer: cheaper than the `DOMException` that Node creates where no reason is given. */
const timerNotNeeded = "timer not needed";

export interface Deadline {
  /** The time limit of the work. Default: none. */
  readonly ms?: number | undefined;
  /** Ends the work early. */
  readonly signal?: AbortSignal | undefined;
  /** Default: the system's. */
  readonly clock?: Clock | undefined;
  /** Creates the error for work that exceeds the limit. */
  onTimeout(): unknown;
}

/**
 * Resolves with the result of `work`. Rejects at the deadline, or when the caller's signal fires, without waiting for
 * the work. A function gets a signal that fires at the same moment; it is not called if the caller's signal has
 * already fired.
 */
export async function withDeadline<Value>(
  work: PromiseLike<Value> | ((signal: AbortSignal) => Value | PromiseLike<Value>),
  { ms, signal, clock = systemClock, onTimeout }: Deadline,
): Promise<Value> {
  const link = linkSignals([signal]);
  const timer = new AbortController();
  if (ms !== undefined)
    clock.sleep(ms, timer.signal).then(
      () => link.abort(onTimeout()),
      () => undefined,
    );
  const begun = Promise.withResolvers<Value>();
  // The race listens before the work does, so it rejects with the signal's reason and not with an error of the work.
  const raced = raceSignal(begun.promise, link.signal);
  if (typeof work !== "function") begun.resolve(work);
  else if (!link.signal.aborted) begun.resolve(new Promise((resolve) => resolve(work(link.signal))));
  try {
    return await raced;
  } finally {
    timer.abort(timerNotNeeded);
    link.unlink();
  }
}

/** Returns whether the work settles within `ms` milliseconds. It does not stop the work. */
export async function endsWithin(
  ms: number,
  work: PromiseLike<unknown>,
  clock: Clock = systemClock,
): Promise<boolean> {
  const timer = new AbortController();
  const late = clock.sleep(ms, timer.signal).then(
    () => false,
    () => false,
  );
  const ended = work.then(
    () => true,
    () => true,
  );
  try {
    return await Promise.race([ended, late]);
  } finally {
    timer.abort(timerNotNeeded);
  }
}
