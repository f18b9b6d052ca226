import { expect, test } from "vitest";
import { oncePerProject } from "./load-peer.ts";

test("callers that try again after a failure share the next attempt", async () => {
  let loads = 0;
  const load = oncePerProject(async () => {
    loads += 1;
    const number = loads;
    await null;
    if (number === 1) throw new Error("The package is absent.");
    return number;
  });
  const again = () => load("project").catch(() => load("project"));
  expect(await Promise.all([again(), again(), again()])).toEqual([2, 2, 2]);
});
