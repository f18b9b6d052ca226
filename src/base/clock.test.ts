import { expect, test } from "vitest";
import { systemClock } from "./clock.ts";

test("a sleep can be longer than the longest timer", async () => {
  for (const ms of [2 ** 31, 30 * 24 * 3_600_000, Number.POSITIVE_INFINITY]) {
    const over = new AbortController();
    let ended = false;
    const sleep = systemClock.sleep(ms, over.signal).then(
      () => {
        ended = true;
      },
      (reason: unknown) => reason,
    );
    // A timer that is set for too long fires after a millisecond, so before this one.
    await systemClock.sleep(10);
    expect(ended).toBe(false);
    over.abort("enough");
    expect(await sleep).toBe("enough");
  }
});
