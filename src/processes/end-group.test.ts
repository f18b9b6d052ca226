import { spawn } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { createTemporaryRepository } from "../testing/temporary-repository.ts";
import { endOrphans, markName } from "./end-group.ts";

test.skipIf(process.platform !== "linux")(
  "nothing is written after the commands of a dead process were ended, though they start programs all the time",
  async () => {
    await using folder = await createTemporaryRepository({ evil: "x".repeat(1_000_000) });
    const writer = "while :; do cp evil copy; echo beat >> beats; done";
    for (let round = 0; round < 15; round += 1) {
      const env = { ...process.env, [markName]: `dead${round}.1` };
      for (const _ of [1, 2, 3])
        spawn("sh", ["-c", writer], { cwd: folder.root, env, stdio: "ignore", detached: true }).unref();
      const beats = join(folder.root, "beats");
      await expect.poll(() => existsSync(beats)).toBe(true);
      expect(endOrphans(`dead${round}`)).toBe(true);
      const state = () => ["beats", "copy"].map((name) => statSync(join(folder.root, name)).ctimeMs);
      const before = state();
      await delay(50);
      expect(state()).toEqual(before);
    }
    expect(endOrphans("dead1")).toBe(false);
  },
);
