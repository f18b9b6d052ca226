import { expect, test } from "vitest";
import { createId, createUlid } from "./id.ts";

test("an id holds its time, and has 26 characters of Crockford's base 32", () => {
  const later = Date.now() + 60_000;
  const id = createUlid(later);
  expect(id).toMatch(/^[0-9A-HJKMNP-TV-Z]{26}$/);
  let time = 0;
  for (const digit of id.slice(0, 10)) time = time * 32 + "0123456789ABCDEFGHJKMNPQRSTVWXYZ".indexOf(digit);
  expect(time).toBe(later);
  expect(createId("op")).toMatch(/^op_[0-9A-Z]{26}$/);
});

test("ids ascend strictly, within a millisecond and when the clock goes back", () => {
  const start = Date.now() + 120_000;
  const times = [start, start, start + 1, start - 5_000, start + 1, start + 2];
  const ids = times.flatMap((time) => Array.from({ length: 1_000 }, () => createUlid(time)));
  expect(ids).toEqual(ids.toSorted());
  expect(new Set(ids).size).toBe(ids.length);
});

test("ids that exceed the limit of a millisecond carry the next one", () => {
  const start = Date.now() + 180_000;
  let last = createUlid(start);
  let ascending = true;
  for (let index = 0; index < 1_100_000; index += 1) {
    const id = createUlid(start);
    ascending &&= id > last;
    last = id;
  }
  expect(ascending).toBe(true);
});
