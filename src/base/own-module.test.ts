import { existsSync } from "node:fs";
import { expect, it } from "vitest";
import { ownModule } from "./own-module.ts";

it("finds the modules that run on their own among the sources", () => {
  for (const path of [
    "project/store/writer-thread",
    "python/child/main",
    "python/child/watchdog",
    "client/index",
  ]) {
    expect(existsSync(ownModule(path)), path).toBe(true);
  }
});
