export interface LinkedSignals {
  /** Fires with the first of the others, and its reason. */
  readonly signal: AbortSignal;
  /** Fires it by itself. */
  abort(reason: unknown): void;
  /** Lets go of the others. To be called when the work is over. */
  unlink(): void;
}

/**
 * One signal for a piece of work that stops for several reasons. Not `AbortSignal.any`: Node keeps what
 * that gives, once it is listened to, for as long as its sources live, and those of an engine live as long
 * as the process.
 */
export function linkSignals(sources: readonly AbortSignal[]): LinkedSignals {
  const own = new AbortController();
  const stop = (reason: unknown): void => own.abort(reason);
  for (const source of sources) {
    if (source.aborted) own.abort(source.reason);
    else stopsOf(source).add(stop);
  }
  return {
    signal: own.signal,
    abort: stop,
    unlink() {
      for (const source of sources) stopping.get(source)?.delete(stop);
    },
  };
}

/** What each source stops. It has one listener, however much work comes and goes. */
const stopping = new WeakMap<AbortSignal, Set<(reason: unknown) => void>>();

function stopsOf(source: AbortSignal): Set<(reason: unknown) => void> {
  const known = stopping.get(source);
  if (known !== undefined) return known;
  const stops = new Set<(reason: unknown) => void>();
  stopping.set(source, stops);
  source.addEventListener(
    "abort",
    () => {
      for (const stop of stops) stop(source.reason);
    },
    { once: true },
  );
  return stops;
}
