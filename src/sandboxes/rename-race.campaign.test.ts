import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { KitError } from "../base/kit-error.ts";
import { canHoldFolders } from "../files/walk.ts";
import { rounds } from "../testing/campaign.suite.ts";
import type { Sandbox } from "./contract.ts";
import { workspaceName } from "./host/workspace-name.ts";
import { local } from "./local/local-sandbox.ts";
import { virtual } from "./virtual/virtual-sandbox.ts";

const owner = { agent: "tester", instance_id: "1", session: "default" };

// `KIT_FULL_RACE=1` makes the numbers those of tests/security/paths.json.
const isFull = process.env.KIT_FULL_RACE === "1";
const reads = isFull ? 20_000 : rounds(400, 2_000);
const writes = isFull ? 5_000 : rounds(100, 500);

const subjects: readonly { readonly name: string; open(base: string): Promise<Sandbox> }[] = [
  { name: "local", open: (base) => local({ root: join(base, workspaceName(owner)) }).open(owner) },
  { name: "virtual", open: (base) => virtual({ folder: base }).open(owner) },
];

// Systems without paths of open folders check names just before their use, which a race can win.
test.skipIf(!canHoldFolders()).each(subjects)(
  "a folder that is swapped for a link meanwhile leads nothing into or out of a $name workspace",
  async ({ name, open }) => {
    const base = await realpath(await mkdtemp(join(tmpdir(), "kit-race-")));
    const root = join(base, workspaceName(owner));
    const outside = join(base, "outside-race");
    await mkdir(join(root, "race"), { recursive: true });
    await mkdir(outside);
    await writeFile(join(root, "race", "f.txt"), "inside");
    await writeFile(join(outside, "f.txt"), "TOP-SECRET-R");
    await symlink("../outside-race", join(root, "evil"));
    const sandbox = await open(base);
    const swapper = spawn(process.execPath, [join(import.meta.dirname, "../testing/swap-folder.ts"), root], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const ended = once(swapper, "close");
    const outcomes = new Map<string, number>();
    const count = (outcome: string): void => {
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    };
    const attempt = async (kind: "read" | "write", work: () => Promise<string>): Promise<void> => {
      try {
        count(`${kind} ${await work()}`);
      } catch (error) {
        count(`${kind} ${error instanceof KitError ? error.code : String(error)}`);
      }
    };
    try {
      await once(swapper.stdout, "data");
      // Until both sides of the race were met, or nothing was tried.
      const expected = ["read inside", "read forbidden", "write done"];
      const metAll = (): boolean => expected.every((outcome) => outcomes.has(outcome));
      for (let round = 0; round < reads || !metAll(); round += 1) {
        await attempt("read", () => sandbox.readFile("race/f.txt"));
        if (round % (reads / writes) !== 0) continue;
        await attempt("write", async () => {
          await sandbox.writeFile("race/g.txt", "KIT-WROTE");
          return "done";
        });
      }
      expect(await readdir(outside)).toEqual(["f.txt"]);
      expect(swapper.exitCode).toBeNull();
    } finally {
      swapper.kill("SIGKILL");
      await ended;
      await rm(base, { recursive: true, force: true });
    }
    if (isFull) process.stdout.write(`${name}: ${JSON.stringify(Object.fromEntries(outcomes))}\n`);
    expect([...outcomes.keys()]).not.toContain("read TOP-SECRET-R");
  },
);
