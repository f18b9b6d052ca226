import { KitError } from "../../base/kit-error.ts";
import type { ExecResult } from "../../sandboxes/contract.ts";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import { runCommand } from "./run-command.ts";

/** Runs a command without isolation in a folder. Returns its result, or the reason of its refusal. */
export async function runUnwalled(
  root: string,
  command: string,
  options: Partial<Pick<Parameters<typeof runCommand>[0], "policy" | "env" | "timeoutMs">> = {},
): Promise<ExecResult | string> {
  const owner = { agent: "tester", instance_id: "1", session: "default" };
  const sandbox = await local({ root, isolation: "off" }).open(owner);
  try {
    const { policy, env = {}, ...rest } = options;
    const call = { command, sandbox, env, signal: AbortSignal.timeout(20_000), emit: () => undefined };
    return await runCommand({ ...call, ...rest, policy: { allowShell: true, allowWrite: true, ...policy } });
  } catch (error) {
    if (error instanceof KitError && error.code === "forbidden") return error.message;
    throw error;
  } finally {
    await sandbox.close();
  }
}
