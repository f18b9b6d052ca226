import { isoTime } from "../../base/clock.ts";
import type { ExecResult } from "../../sandboxes/contract.ts";
import type { Harness, LiveSession } from "../agent-runtime.ts";

import { createSecretMask, secretsFor } from "../secrets.ts";

import { runCommand } from "../tools/run-command.ts";

export interface ShellOptions {
  readonly cwd?: string;
  readonly timeoutMs?: number;
  /** Names in `env` whose values this command gets. */
  readonly secrets?: readonly string[];
  readonly signal?: AbortSignal;
}

/** Runs a command under the agent's policy, and notes it in the history for the model to see. */
export function runShell(
  harness: Harness,
  live: LiveSession,
  call: { readonly command: string; readonly options: ShellOptions },
): Promise<ExecResult> {
  const { command, options } = call;
  return live.operate(
    { kind: "shell", ...(options.signal && { signal: options.signal }) },
    async (operation) => {
      const secrets = secretsFor(harness.runtime.env, options.secrets ?? []);
      const raw = await runCommand({
        command,
        sandbox: await live.sandbox(),
        policy: live.profile,
        env: secrets.env,
        signal: operation.signal,
        emit: operation.emit,
        ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
        ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
      });
      const own = createSecretMask(secrets.values);
      const mask = (text: string): string => harness.runtime.mask?.(own(text)) ?? own(text);
      const result = { ...raw, stdout: mask(raw.stdout), stderr: mask(raw.stderr) };
      const text = `The user ran \`${mask(command)}\` (exit code ${result.exit_code ?? "none"}):\n\n${result.stdout}${result.stderr}`;
      await operation.append([
        {
          version: 1,
          type: "message",
          operation_id: operation.id,
          message: {
            role: "user",
            content: [{ type: "text", text }],
            timestamp: isoTime(harness.runtime.clock.now()),
          },
        },
      ]);
      return result;
    },
  );
}
