import { type Clock, systemClock } from "./clock.ts";

/**
 * Calls a listener once the signal fires, with its reason: at once if it has fired already. The function that
 * comes back removes the listener; without a signal both do nothing.
 */
export function onAbort(signal: AbortSignal | undefined, listener: (reason: unknown) => void): () => void {
  if (signal === undefined) return () => undefined;
  const call = (): void => listener(signal.reason);
  if (signal.aborted) call();
  else signal.addEventListener("abort", call, { once: true });
  return () => signal.removeEventListener("abort", call);
}

/**
 * The result of `work`, or a rejection with the signal's reason when it fires first. The work goes on; the
 * caller does not have to handle its later rejection.
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
  /** Fires with the first of its sources, and its reason. */
  readonly signal: AbortSignal;
  /** Fires the signal alone. */
  abort(reason: unknown): void;
  /** Forgets the sources. The caller calls it when the work is over. */
  unlink(): void;
}

/**
 * One signal for work that stops for several reasons. `AbortSignal.any` is for sources that live as long as the work:
 * Node keeps its signals, once they have a listener, until their sources are gone, and the sources of an engine
 * or a pool live as long as the process.
 */
export function linkSignals(sources: readonly (AbortSignal | undefined)[]): LinkedSignals {
  const own = new AbortController();
  const stop = (reason: unknown): void => own.abort(reason);
  for (const source of sources) {
    if (source === undefined) continue;
    if (source.aborted) own.abort(source.reason);
    else stopsOf(source).add(stop);
  }
  return {
    signal: own.signal,
    abort: stop,
    unlink() {
      for (const source of sources) if (source !== undefined) stopping.get(source)?.delete(stop);
    },
  };
}

/** The stop functions of each source. A source has one listener, however many works begin and end. */
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

/**
 * The reason that ends a timer without a waiting caller: the `DOMException` that Node would make costs more.
 */
const over = "over";

export interface Deadline {
  /** How long the work may take. Default: no limit. */
  readonly ms?: number | undefined;
  /** Ends the work early. */
  readonly signal?: AbortSignal | undefined;
  /** Default: the system's. */
  readonly clock?: Clock | undefined;
  /** Makes the error of work that takes too long. */
  onTimeout(): unknown;
}

/**
 * The result of work that has to end in time. At the deadline, and when the caller's signal fires, it rejects at once,
 * whether the work listens or not. Work given as a function gets a signal that fires then, too; it does not begin
 * when the caller's signal has fired already.
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
  // The race listens before the work does: the signal's reason wins over what the work makes of it.
  const raced = raceSignal(begun.promise, link.signal);
  if (typeof work !== "function") begun.resolve(work);
  else if (!link.signal.aborted) begun.resolve(new Promise((resolve) => resolve(work(link.signal))));
  try {
    return await raced;
  } finally {
    timer.abort(over);
    link.unlink();
  }
}

/** Whether work has ended after at most so many milliseconds, in success or not. The work goes on. */
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
    timer.abort(over);
  }
}
