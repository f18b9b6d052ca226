import { expect, test } from "vitest";
import { linkSignals } from "./link-signals.ts";

test("a linked signal fires with the first of its sources, and its reason", () => {
  const [one, other] = [new AbortController(), new AbortController()];
  const { signal } = linkSignals([one.signal, other.signal]);
  other.abort("other");
  one.abort("one");
  expect(signal.reason).toBe("other");
  expect(linkSignals([one.signal]).signal.reason).toBe("one");
});

test("a signal that is let go does not fire with its sources, and can be fired by itself", () => {
  const source = new AbortController();
  const link = linkSignals([source.signal]);
  link.unlink();
  source.abort("late");
  expect(link.signal.aborted).toBe(false);
  link.abort("own");
  expect(link.signal.reason).toBe("own");
});
