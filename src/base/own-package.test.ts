import { existsSync } from "node:fs";
import { expect, it } from "vitest";
import { ownModule } from "./own-package.ts";

it("finds the modules that run as their own processes or threads", () => {
  for (const path of [
    "project/store/writer-thread",
    "python/child/main",
    "python/child/watchdog",
    "client/index",
  ]) {
    expect(existsSync(ownModule(path)), path).toBe(true);
  }
});
