import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { KitError } from "../../base/kit-error.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { startHousekeeping } from "./housekeeping.ts";
import type { Service } from "./service.ts";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

const toError = (message: string) => new KitError({ code: "unavailable", message });

test("each problem and each warning is reported once while it lasts, and once when it is over", async () => {
  const reports: string[] = [];
  let problem: KitError | undefined;
  let warning: KitError | undefined;
  const end = startHousekeeping(
    {
      problem: () => problem,
      warning: () => warning,
      // Sessions are removed where a time is set.
      sessions: {} as Service["sessions"],
      store: new InMemorySessionStore(),
    },
    {
      onError: (error) => void reports.push(`reported: ${(error as Error).message}`),
      onResolved: (text) => void reports.push(`over: ${text}`),
    },
  );
  const nextCheck = () => vi.advanceTimersByTimeAsync(3_000);
  await nextCheck();
  warning = toError("Restate does not answer.");
  await nextCheck();
  // Its reason changes, and changes back.
  warning = toError("Restate does not reach this node.");
  await nextCheck();
  warning = toError("Restate does not answer.");
  problem = toError("The files are gone.");
  await nextCheck();
  expect(reports.splice(0)).toEqual([
    "reported: Restate does not answer.",
    "reported: Restate does not reach this node.",
    "reported: The files are gone.",
  ]);
  warning = undefined;
  await nextCheck();
  expect(reports.splice(0)).toEqual([
    "over: Restate does not answer.",
    "over: Restate does not reach this node.",
  ]);
  problem = undefined;
  await nextCheck();
  warning = toError("Restate does not answer.");
  await nextCheck();
  expect(reports).toEqual(["over: The files are gone.", "reported: Restate does not answer."]);
  await end();
});
