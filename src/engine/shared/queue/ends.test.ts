import { expect, test } from "vitest";
import { KitError } from "../../../base/kit-error.ts";
import { Ends } from "./ends.ts";

test("a wait outlasts an outage of the store once the work was found; before that, the outage is its error", async () => {
  const away = new KitError({ code: "store_unavailable", message: "Away." });
  let read = async (): Promise<{ readonly ended: boolean }> => ({ ended: false });
  const ends = new Ends({
    find: () => read(),
    hasEnded: ({ ended }) => ended,
    openAmong: async (ids) => ids,
  });
  const waiting = ends.wait("a", undefined);
  await new Promise((resolve) => setImmediate(resolve));
  read = () => Promise.reject(away);
  ends.wake("a");
  await expect(ends.wait("a", undefined)).rejects.toBe(away);
  read = async () => ({ ended: true });
  expect(await waiting).toEqual({ ended: true });
});
