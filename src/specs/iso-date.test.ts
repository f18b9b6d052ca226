import fc from "fast-check";
import { expect, test } from "vitest";
import { isIsoDate } from "./iso-date.ts";

test.each([
  "2026-05-26",
  "2024-02-29",
  "2000-02-29",
  "2026-05-26T18:03",
  "2026-05-26T18:03:03",
  "2026-05-26T18:03:03Z",
  "2026-05-26T18:03:03.123456+01:00",
  "2026-05-26T18:03:03-0530",
])("%s is a date", (text) => {
  expect(isIsoDate(text)).toBe(true);
});

test.each([
  "",
  "yesterday",
  "2024-13-45",
  "2023-02-29",
  "1900-02-29",
  "2026-04-31",
  "2026-00-10",
  "2026-05-00",
  "2026-05",
  "20260526",
  "2026-W21-2",
  "2026-5-6",
  "26-05-26",
  "2026-05-26 18:03:03",
  "2026-05-26T24:00:00",
  "2026-05-26T18:60:00",
  "2026-05-26T18:03:60",
  "2026-05-26T18",
  "2026-05-26T18:03:03+25:00",
  "2026-05-26Z",
  " 2026-05-26",
  "2026-05-26\n",
])("%j is no date", (text) => {
  expect(isIsoDate(text)).toBe(false);
});

test("every date that JavaScript prints is a date, and every date and time that passes, it reads", () => {
  fc.assert(
    fc.property(
      fc.date({ min: new Date("0001-01-01"), max: new Date("9999-12-31"), noInvalidDate: true }),
      (date) => {
        expect(isIsoDate(date.toISOString())).toBe(true);
        expect(isIsoDate(date.toISOString().slice(0, 10))).toBe(true);
      },
    ),
  );
  const part = (max: number) => fc.integer({ min: 0, max }).map((n) => String(n).padStart(2, "0"));
  fc.assert(
    fc.property(part(13), part(32), part(25), (month, day, hour) => {
      const text = `2023-${month}-${day}T${hour}:00:00Z`;
      const read = new Date(text);
      const isSame = !Number.isNaN(read.getTime()) && read.toISOString().startsWith(text.slice(0, 19));
      expect(isIsoDate(text)).toBe(isSame);
    }),
  );
});
