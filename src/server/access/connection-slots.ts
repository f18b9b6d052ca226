import { KitError } from "../../base/kit-error.ts";

/** Places for what stays open: streams of events, WebSockets. */
export interface ConnectionSlots {
  /**
   * Takes a place for a principal, or for an unknown sender. Throws `unavailable` when all are taken, and
   * `too_many_requests` when the principal has its share of them.
   */
  take(principal: string | undefined): ConnectionSlot;
}

export interface ConnectionSlot {
  /** Gives it back; the second time nothing happens. */
  release(): void;
}

export interface ConnectionSlotsOptions {
  /** The name of the connections that take them, in the plural. */
  readonly what: string;
  readonly slots: number;
  /** How many of them one principal may have; without it, as many as are left for others. */
  readonly share?: number | undefined;
}

/** When to try again. It is not known when a place becomes free. */
const retryAfterS = 5;

/**
 * Creates the places of a server. Without a limit of its own, a principal's share ends where it has as many as there are
 * left, as in the line of the engine: one has half of the places at most, two have a third each, and so on, so that
 * there is always room for whoever comes next.
 */
export function createConnectionSlots({ what, slots, share }: ConnectionSlotsOptions): ConnectionSlots {
  let taken = 0;
  const perPrincipal = new Map<string, number>();
  const change = (principal: string | undefined, by: 1 | -1): void => {
    taken += by;
    if (principal === undefined) return;
    const count = (perPrincipal.get(principal) ?? 0) + by;
    if (count === 0) perPrincipal.delete(principal);
    else perPrincipal.set(principal, count);
  };
  const check = (principal: string | undefined): void => {
    if (taken >= slots) {
      const meta = { scope: "server", retry_after_s: retryAfterS };
      throw new KitError({ code: "unavailable", message: `Too many ${what} are open.`, meta });
    }
    const own = principal === undefined ? 0 : (perPrincipal.get(principal) ?? 0);
    if (own < Math.max(1, share ?? slots - taken)) return;
    throw new KitError({
      code: "too_many_requests",
      message: `${own} ${what} of yours are open, which is the share of one principal.`,
      hint: "Close those that are not read any more, or try again when others have left.",
      meta: { scope: "principal", open: own, retry_after_s: retryAfterS },
    });
  };
  return {
    take(principal) {
      check(principal);
      change(principal, 1);
      let isHeld = true;
      return {
        release() {
          if (isHeld) change(principal, -1);
          isHeld = false;
        },
      };
    },
  };
}
