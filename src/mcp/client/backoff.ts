import { times } from "./limits.ts";

/** When a server may be tried again. */
export interface Backoff {
  /** Milliseconds until then; 0 when it is now. */
  remainingMs(): number;
  /** How often it failed since it last did what it was asked. */
  readonly failures: number;
  /** It could not be reached, was lost, was cut off (`isFlood`), or asks for a pause. */
  failed(how?: { readonly isFlood: boolean; readonly retryAfterMs: number | undefined }): void;
  /** It did what it was asked. */
  succeeded(): void;
}

/**
 * Waits longer after each failure that follows another: 1, 2, 4, … 60 seconds. A server that was lost
 * after it had worked is tried again at once, but not one that was cut off for a flood.
 */
export function createBackoff(now: () => number): Backoff {
  let failures = 0;
  let notBefore = 0;
  let worked = false;
  return {
    remainingMs: () => Math.max(0, notBefore - now()),
    get failures() {
      return failures;
    },
    failed(how) {
      failures += 1;
      const doubled = times.firstBackoff * 2 ** Math.min(failures - 1, 10);
      const pause = worked && how?.isFlood !== true ? 0 : Math.min(doubled, times.maxBackoff);
      notBefore = now() + Math.max(pause, Math.min(how?.retryAfterMs ?? 0, times.maxRetryAfter));
      worked = false;
    },
    succeeded() {
      failures = 0;
      worked = true;
    },
  };
}
