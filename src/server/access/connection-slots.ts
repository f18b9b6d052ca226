import { KitError } from "../../base/kit-error.ts";

/** Limits how many connections of a kind are open: event streams or WebSockets. */
export interface ConnectionSlots {
  /**
   * Reserves a slot for a principal, or for an unknown sender. Throws `unavailable` if no slot is free, and
   * `too_many_requests` if the principal already uses its share.
   */
  take(principal: string | undefined): ConnectionSlot;
}

export interface ConnectionSlot {
  /** Releases the slot; a second call does nothing. */
  release(): void;
}

export interface ConnectionSlotsOptions {
  /** The plural name of the connections, for messages. */
  readonly what: string;
  readonly slots: number;
  /** The limit of one principal; default: as many slots as are free. */
  readonly share?: number | undefined;
}

/** The advised delay before a retry; kit does not know when a slot becomes free. */
const retryAfterS = 5;

/**
 * Creates the slots of a server. Without a configured limit, a principal can use as many slots as are free, as in the
 * queue of the engine: one principal gets at most half of the slots, two get a third each, and so on, so that there is
 * always room for the next one.
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
  return {
    take(principal) {
      if (taken >= slots) {
        const meta = { scope: "server", retry_after_s: retryAfterS };
        throw new KitError({ code: "unavailable", message: `Too many ${what} are open.`, meta });
      }
      const openCount = principal === undefined ? 0 : (perPrincipal.get(principal) ?? 0);
      if (openCount >= Math.max(1, share ?? slots - taken))
        throw new KitError({
          code: "too_many_requests",
          message: `You have ${openCount} open ${what}, the most that one principal may have.`,
          hint: "Close those that you no longer read, or try again when others are closed.",
          meta: { scope: "principal", open: openCount, retry_after_s: retryAfterS },
        });
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
