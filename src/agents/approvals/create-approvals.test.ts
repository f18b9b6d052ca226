import { expect, test } from "vitest";
import { isoTime } from "../../base/clock.ts";
import type { ApprovalRequest } from "../../protocol/approval.ts";
import { createManualClock, type ManualClock } from "../../testing/manual-clock.ts";
import { type Approvals, createApprovals, createApprovalsBy } from "./approvals.ts";

function toRequest(number: number, now: number, ms?: number): ApprovalRequest {
  return {
    approval_id: `approval_${number}`,
    agent: "payer",
    instance_id: "1",
    session: "default",
    operation_id: "op_1",
    tool_call_id: "call_1",
    tool: "pay",
    args: {},
    requested_at: isoTime(now),
    ...(ms === undefined ? {} : { expires_at: isoTime(now + ms) }),
  };
}

const endless = new AbortController().signal;

/** Requests an approval per time limit; returns a list that receives the indexes of the denied ones, in order. */
function ask(approvals: Approvals, clock: ManualClock, times: readonly number[]): number[] {
  const denied: number[] = [];
  times.forEach((ms, number) => {
    void approvals.request(toRequest(number, clock.now(), ms), endless).then(({ approved }) => {
      if (!approved) denied.push(number);
    });
  });
  return denied;
}

test("each of a thousand calls is denied at its own time", async () => {
  const clock = createManualClock();
  const approvals = createApprovalsBy(clock);
  const times = Array.from({ length: 1_000 }, (_, number) => 1_000 + ((number * 7) % 13) * 100);
  const denied = ask(approvals, clock, times);
  await clock.advance(999);
  expect(denied).toHaveLength(0);
  for (let ms = 1_000; ms <= 2_200; ms += 100) {
    await clock.advance(ms === 1_000 ? 1 : 100);
    expect(denied).toHaveLength(times.filter((time) => time <= ms).length);
  }
  expect(await approvals.list()).toEqual([]);
});

test("a thousand calls with the same time limit are denied together and share a timer", async () => {
  const approvals = createApprovals();
  const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  const before = timers();
  const now = Date.now();
  const asked = Array.from({ length: 1_000 }, (_, number) =>
    approvals.request(toRequest(number, now, 50), endless),
  );
  await Promise.resolve();
  // The test runner has a few timers, too.
  expect(timers() - before).toBeLessThan(10);
  const said = await Promise.all(asked);
  expect(said.every(({ approved }) => !approved)).toBe(true);
});

test.each([
  ["forward", 2 * 3_600_000],
  ["back", -2 * 3_600_000],
])("setting the clock %s does not change how long a call waits", async (_how, ms) => {
  const clock = createManualClock();
  const approvals = createApprovalsBy(clock);
  const denied = ask(approvals, clock, [10_000, 20_000]);
  clock.set(clock.now() + ms);
  await clock.advance(9_999);
  expect(denied).toEqual([]);
  await clock.advance(1);
  expect(denied).toEqual([0]);
  await clock.advance(10_000);
  expect(denied).toEqual([0, 1]);
});

test("time during which the machine was asleep counts, with a delay of at most a minute", async () => {
  const clock = createManualClock();
  const approvals = createApprovalsBy(clock);
  const denied = ask(approvals, clock, [3_600_000]);
  clock.suspend(3_600_000);
  await clock.advance(60_000);
  expect(denied).toEqual([0]);
});

test("a decision in the last millisecond counts if it comes before the denial", async () => {
  const clock = createManualClock();
  const approvals = createApprovalsBy(clock);
  const word = approvals.request(toRequest(0, clock.now(), 1_000), endless);
  await clock.advance(999);
  const ended = clock.advance(1);
  await approvals.decide("approval_0", { approved: true });
  await ended;
  expect(await word).toEqual({ approved: true });
  await expect(approvals.decide("approval_0", { approved: false })).rejects.toMatchObject({
    code: "not_found",
  });
});

test("a later call with a shorter limit ends on time, and earlier calls keep their limits", async () => {
  const clock = createManualClock();
  const approvals = createApprovalsBy(clock);
  const denied = ask(approvals, clock, [60_000]);
  void approvals.request(toRequest(7, clock.now(), 1_000), endless).then(() => denied.push(7));
  await clock.advance(1_000);
  expect(denied).toEqual([7]);
  await clock.advance(59_000);
  expect(denied).toEqual([7, 0]);
});

test("a call whose time limit has already passed is denied at once", async () => {
  const clock = createManualClock();
  const denied = ask(createApprovalsBy(clock), clock, [-5_000]);
  await clock.advance(0);
  expect(denied).toEqual([0]);
});
