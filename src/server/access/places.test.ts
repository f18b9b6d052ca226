import fc from "fast-check";
import { expect, test } from "vitest";
import { KitError } from "../../base/kit-error.ts";
import { createPlaces, type Place } from "./places.ts";

test("the next caller finds room, however much the others take, and all places are released", () => {
  const steps = fc.array(fc.record({ who: fc.integer({ min: 0, max: 4 }), leaves: fc.boolean() }), {
    maxLength: 200,
  });
  fc.assert(
    fc.property(fc.integer({ min: 8, max: 40 }), steps, (places, moves) => {
      const open = createPlaces({ what: "streams", places });
      const held: (readonly [who: number, place: Place])[] = [];
      for (const { who, leaves } of moves) {
        if (leaves) {
          held.shift()?.[1].release();
          continue;
        }
        const own = held.filter(([one]) => one === who).length;
        const mayTake = own < Math.max(1, places - held.length);
        try {
          held.push([who, open.take(`p${who}`)]);
          expect(mayTake).toBe(true);
        } catch (error) {
          if (!(error instanceof KitError)) throw error;
          expect([mayTake, error.code]).toEqual([false, "too_many_requests"]);
        }
      }
      // Five principals never take all of eight places or more.
      expect(() => open.take("stranger").release()).not.toThrow();
      for (const [, place] of held) for (const _ of [1, 2]) place.release();
      expect(Array.from({ length: places }, () => open.take(undefined)).length).toBe(places);
      expect(() => open.take(undefined)).toThrow("Too many streams are open.");
    }),
  );
});

test("a share that the configuration sets is kept to, and senders without a principal have none", () => {
  const open = createPlaces({ what: "connections", places: 5, share: 4 });
  const own = [1, 2, 3, 4].map(() => open.take("one"));
  expect(() => open.take("one")).toThrow(
    "4 connections of yours are open, which is the share of one principal.",
  );
  own[0]?.release();
  open.take("one");
  open.take(undefined);
  expect(() => open.take("two")).toThrow("Too many connections are open.");
});
