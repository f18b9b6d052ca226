import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe } from "vitest";
import { sandboxContract } from "../../contract.suite.ts";
import type { SandboxFactory, SandboxOwner } from "../../contract.ts";
import { type RemoteSubject, useRemote } from "./remote.suite.ts";

/** The real vendor; tested only with a key and `KIT_LIVE_SANDBOX_TESTS=1`. */
export interface LiveSubject {
  /** The environment variable with the key. */
  readonly key: string;
  readonly factory: SandboxFactory;
}

/** Runs the whole contract against the fake, and on request against the real vendor. */
export function remoteContract(subject: RemoteSubject, { key, factory }: LiveSubject): void {
  describe(`${subject.name} on its fake`, () => {
    const bench = useRemote(subject);
    let owner = { agent: "tester", instance_id: "0", session: "default", project_root: "" };
    sandboxContract({
      name: subject.name,
      create() {
        owner = bench.nextOwner();
        return bench.factory().open(owner);
      },
      reopen: () => bench.factory().open(owner),
    });
  });

  const isAsked = process.env.KIT_LIVE_SANDBOX_TESTS === "1" && (process.env[key] ?? "") !== "";
  describe.skipIf(!isAsked)(`${subject.name} itself (KIT_LIVE_SANDBOX_TESTS=1 and ${key})`, () => {
    const owners: SandboxOwner[] = [];
    let root = "";
    beforeAll(async () => {
      root = await mkdtemp(join(tmpdir(), `kit-live-${subject.name}-`));
    });
    afterAll(async () => {
      for (const owner of owners) await factory.remove?.(owner);
      await rm(root, { recursive: true, force: true });
    });
    sandboxContract({
      name: subject.name,
      create() {
        const owner = {
          agent: "live",
          instance_id: `${owners.length}`,
          session: "default",
          project_root: root,
        };
        owners.push(owner);
        return factory.open(owner);
      },
      reopen: () => factory.open(owners.at(-1) ?? { agent: "live", instance_id: "0", session: "default" }),
    });
  });
}
