import { expect, test } from "vitest";
import type { KitEvent } from "../../protocol/event.ts";
import { createWaitClock } from "./prompt-agent.ts";

function event(type: "approval_request" | "approval", id: string, second: number): KitEvent {
  const timestamp = new Date(second * 1_000).toISOString();
  return { type, approval_id: id, timestamp } as unknown as KitEvent;
}

test("the time of a prompt leaves out what calls waited for a person, once where two waited", () => {
  const clock = createWaitClock();
  for (const each of [
    event("approval_request", "a", 1),
    event("approval_request", "b", 3),
    event("approval", "a", 5),
    event("approval", "b", 11),
    event("approval_request", "c", 20),
    event("approval", "c", 21),
  ])
    clock.onEvent(each);
  expect(clock.waitedMs).toBe(11_000);
});
