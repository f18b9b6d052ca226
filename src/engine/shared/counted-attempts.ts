/**
 * The attempts that count towards the limit. An attempt counts if it failed, or if its process died while it worked. Attempts
 * before the work has come further do not count any more.
 */
export interface CountedAttempts {
  /** The attempts that count. */
  readonly spent: number;
  /** How far the work had come when the last counted attempt was judged. */
  readonly progress: number;
}

/** Counts anew if the work has come further since: only its last attempt is left then. */
export function recount({ spent, progress }: CountedAttempts, now: number): CountedAttempts {
  return now > progress ? { spent: Math.min(spent, 1), progress: now } : { spent, progress };
}
