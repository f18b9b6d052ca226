import fc from "fast-check";
import { expect, test } from "vitest";
import { toLabels, toTags } from "./modal-driver.ts";

const label = fc.oneof(
  fc.string({ unit: "binary", maxLength: 200 }),
  fc.stringMatching(/^b64\.[\w.-]{0,90}$/),
);

test("labels survive the conversion to tags, and every tag is valid for the vendor", () => {
  fc.assert(
    fc.property(label, label, (kit_instance, kit_session) => {
      const labels = { kit_instance, kit_session };
      const tags = toTags(labels);
      for (const [name, value] of Object.entries(tags)) {
        expect(name).toMatch(/^[\w.-]{1,63}$/);
        expect(value).toMatch(/^[\w.-]{1,63}$/);
      }
      expect(toLabels(tags)).toEqual(labels);
    }),
  );
});

test("a plain label becomes one unchanged tag, and a long label several", () => {
  expect(toTags({ kit_agent: "fixer-2.0" })).toEqual({ kit_agent: "fixer-2.0" });
  expect(Object.keys(toTags({ kit_instance: "ä".repeat(64) }))).toEqual([
    "kit_instance",
    "kit_instance.1",
    "kit_instance.2",
  ]);
});
