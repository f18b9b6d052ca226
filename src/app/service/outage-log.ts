import { KitError } from "../../base/kit-error.ts";

/** How often a store that stays away is told of, in ms. */
const everyMs = 60_000;

/** Tells that work waits for a store: once when it begins, and again while it lasts, however much work waits. */
export function createOutageLog(onError: (error: unknown) => void): (error: unknown) => void {
  const told = new Map<string, number>();
  return (error) => {
    if (!(error instanceof KitError)) return;
    const now = performance.now();
    if (now - (told.get(error.message) ?? Number.NEGATIVE_INFINITY) < everyMs) return;
    told.set(error.message, now);
    const { code, message, hint, meta, cause } = error;
    onError(
      new KitError({
        code,
        message: `${message} Accepted work waits for it, and goes on by itself.`,
        ...(hint === undefined ? {} : { hint }),
        ...(meta === undefined ? {} : { meta }),
        cause,
      }),
    );
  };
}
