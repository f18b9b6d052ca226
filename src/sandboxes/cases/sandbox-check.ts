import assert from "node:assert/strict";
import type { Sandbox } from "../contract.ts";

/** Checks one promise in a new workspace. */
export type SandboxCheck = (sandbox: Sandbox) => Promise<void>;

/** Fails unless each call rejects with this code. */
export async function refused(
  code: "forbidden" | "invalid_request" | "not_found" | "conflict" | "payload_too_large",
  calls: readonly (() => unknown)[],
): Promise<void> {
  for (const call of calls) {
    // A call may also throw synchronously.
    await assert.rejects(async () => await call(), { code }, call.toString());
  }
}
