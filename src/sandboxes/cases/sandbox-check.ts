import assert from "node:assert/strict";
import type { Sandbox } from "../contract.ts";

/** Shows, in a fresh workspace, that a promise is kept. */
export type SandboxCheck = (sandbox: Sandbox) => Promise<void>;

/** Fails unless each of these calls is refused with that code. */
export async function refused(
  code: "forbidden" | "invalid_request" | "not_found" | "conflict" | "payload_too_large",
  calls: readonly (() => unknown)[],
): Promise<void> {
  for (const call of calls) {
    // A call that throws at once is refused as well as one that rejects.
    await assert.rejects(async () => await call(), { code }, call.toString());
  }
}
