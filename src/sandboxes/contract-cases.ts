import assert from "node:assert/strict";
import type { ContractCase } from "../base/contract-case.ts";
import { commandCases } from "./cases/command-cases.ts";
import { endingCases } from "./cases/ending-cases.ts";
import { fileCases } from "./cases/file-cases.ts";
import { linkCases } from "./cases/link-cases.ts";
import type { SandboxCheck } from "./cases/sandbox-check.ts";
import { searchCases } from "./cases/search-cases.ts";
import type { Sandbox } from "./contract.ts";

/** The sandbox under test. */
export interface SandboxSubject {
  /** Opens a sandbox with an empty workspace. */
  readonly create: () => Promise<Sandbox>;
  /** Opens the workspace of the last `create` again; for persistent sandboxes. */
  readonly reopen?: () => Promise<Sandbox>;
}

/**
 * The promises of `Sandbox` as tests for any runner; each opens a new workspace and closes it. Cases that run
 * commands pass without a check if the sandbox has no `exec`.
 *
 * @example
 * ```ts
 * import { test } from "node:test";
 * import { virtual } from "kit/sandboxes/virtual";
 * import { sandboxCases } from "kit/testing";
 *
 * let count = 0;
 * const create = () => virtual().open({ agent: "tester", instance_id: "1", session: String((count += 1)) });
 * for (const { name, run } of sandboxCases({ create })) test(name, run);
 * ```
 */
export function sandboxCases(subject: SandboxSubject): readonly ContractCase[] {
  const commandChecks = { ...linkCases, ...commandCases, ...endingCases };
  const cases = [
    ...toCases(subject, { ...fileCases, ...searchCases }, () => true),
    ...toCases(subject, commandChecks, (sandbox) => sandbox.capabilities.exec),
  ];
  const { reopen } = subject;
  if (reopen === undefined) return cases;
  const name = "files survive closing the sandbox and opening it again";
  return [...cases, { name, run: () => checkSurvival({ ...subject, reopen }) }];
}

function toCases(
  subject: SandboxSubject,
  checks: Readonly<Record<string, SandboxCheck>>,
  applies: (sandbox: Sandbox) => boolean,
): readonly ContractCase[] {
  return Object.entries(checks).map(([name, check]) => ({
    name,
    run: async () => {
      const sandbox = await subject.create();
      try {
        if (applies(sandbox)) await check(sandbox);
      } finally {
        await sandbox.close();
      }
    },
  }));
}

async function checkSurvival({ create, reopen }: Required<SandboxSubject>): Promise<void> {
  const first = await create();
  await first.writeFile("kept/a.txt", "kept");
  await first.close();
  const second = await reopen();
  try {
    assert.equal(await second.readFile("kept/a.txt"), "kept");
  } finally {
    await second.close();
  }
}
