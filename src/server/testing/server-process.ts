import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

/** The value that must never come back out of a server. */
export const canary = "canary-5f2c";

export interface ServerProcess {
  readonly port: number;
  readonly child: ChildProcess;
  /** What the process wrote to stderr: every internal error. */
  errors(): string;
  stop(): Promise<void>;
}

/** Starts `serve-process.ts` on a project, with a canary in its environment. */
export async function startServerProcess(
  root: string,
  apiKeys: readonly string[] = [],
): Promise<ServerProcess> {
  const script = join(import.meta.dirname, "serve-process.ts");
  const child = spawn(process.execPath, [script, root, ...apiKeys], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, KIT_SECRET_CANARY: canary },
  });
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => {
    errors += chunk.toString("utf8");
  });
  const port = await Promise.race([
    once(child.stdout, "data").then(([chunk]) => Number(String(chunk))),
    once(child, "exit").then(() => {
      throw new Error(`The server did not start: ${errors}`);
    }),
  ]);
  return {
    port,
    child,
    errors: () => errors,
    async stop() {
      if (child.exitCode !== null) return;
      child.stdin.end();
      await once(child, "exit");
    },
  };
}
