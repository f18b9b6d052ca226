import fc from "fast-check";
import { expect, test } from "vitest";
import { KitError } from "../../base/kit-error.ts";
import { type ConnectionSlot, createConnectionSlots } from "./connection-slots.ts";

test("the next principal always gets a slot, and all slots are released", () => {
  const steps = fc.array(fc.record({ client: fc.integer({ min: 0, max: 4 }), leaves: fc.boolean() }), {
    maxLength: 200,
  });
  fc.assert(
    fc.property(fc.integer({ min: 8, max: 40 }), steps, (total, moves) => {
      const open = createConnectionSlots({ what: "streams", slots: total });
      const takenSlots: (readonly [client: number, place: ConnectionSlot])[] = [];
      for (const { client, leaves } of moves) {
        if (leaves) {
          takenSlots.shift()?.[1].release();
          continue;
        }
        const ownSlots = takenSlots.filter(([one]) => one === client).length;
        const mayTake = ownSlots < Math.max(1, total - takenSlots.length);
        try {
          takenSlots.push([client, open.take(`p${client}`)]);
          expect(mayTake).toBe(true);
        } catch (error) {
          if (!(error instanceof KitError)) throw error;
          expect([mayTake, error.code]).toEqual([false, "too_many_requests"]);
        }
      }
      // Five principals never take all of eight places or more.
      expect(() => open.take("stranger").release()).not.toThrow();
      for (const [, slot] of takenSlots) for (const _ of [1, 2]) slot.release();
      expect(Array.from({ length: total }, () => open.take(undefined)).length).toBe(total);
      expect(() => open.take(undefined)).toThrow("Too many streams are open.");
    }),
  );
});

test("a configured share is enforced, and senders without a principal have none", () => {
  const open = createConnectionSlots({ what: "connections", slots: 5, share: 4 });
  const slotsOfOne = [1, 2, 3, 4].map(() => open.take("one"));
  expect(() => open.take("one")).toThrow(
    "You have 4 open connections, the most that one principal may have.",
  );
  slotsOfOne[0]?.release();
  open.take("one");
  open.take(undefined);
  expect(() => open.take("two")).toThrow("Too many connections are open.");
});
