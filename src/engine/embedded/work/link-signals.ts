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
  const follow = ({ target }: { readonly target: EventTarget | null }): void => {
    if (target instanceof AbortSignal) own.abort(target.reason);
  };
  for (const source of sources) {
    if (source.aborted) own.abort(source.reason);
    else source.addEventListener("abort", follow, { once: true });
  }
  return {
    signal: own.signal,
    abort: (reason) => own.abort(reason),
    unlink() {
      for (const source of sources) source.removeEventListener("abort", follow);
    },
  };
}
