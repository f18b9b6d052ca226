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

test("each problem and each warning is told once while it lasts, and once when it is over", async () => {
  const told: string[] = [];
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
      onError: (error) => void told.push(`told: ${(error as Error).message}`),
      onResolved: (text) => void told.push(`over: ${text}`),
    },
  );
  const look = () => vi.advanceTimersByTimeAsync(3_000);
  await look();
  warning = toError("Restate does not answer.");
  await look();
  // Its reason changes, and changes back.
  warning = toError("Restate does not reach this node.");
  await look();
  warning = toError("Restate does not answer.");
  problem = toError("The files are gone.");
  await look();
  expect(told.splice(0)).toEqual([
    "told: Restate does not answer.",
    "told: Restate does not reach this node.",
    "told: The files are gone.",
  ]);
  warning = undefined;
  await look();
  expect(told.splice(0)).toEqual([
    "over: Restate does not answer.",
    "over: Restate does not reach this node.",
  ]);
  problem = undefined;
  await look();
  warning = toError("Restate does not answer.");
  await look();
  expect(told).toEqual(["over: The files are gone.", "told: Restate does not answer."]);
  await end();
});
