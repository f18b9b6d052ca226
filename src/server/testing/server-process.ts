import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** The value that must never come back out of a server. */
export const canary = "canary-5f2c";

export interface ServerState {
  /** How many connections it has. */
  readonly sockets: number;
  /** Whether the prototype of all objects was changed. */
  readonly polluted: boolean;
  /** Milliseconds that its thread has computed so far. */
  readonly processorMs: number;
}

export interface ServerProcess {
  readonly port: number;
  readonly child: ChildProcess;
  /** The process's stderr: every internal error. */
  errors(): string;
  state(): Promise<ServerState>;
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
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async (): Promise<string> => {
    const next = await lines.next();
    if (next.done === true) throw new Error(`The server has ended: ${errors}`);
    return next.value;
  };
  const port = Number(await line());
  return {
    port,
    child,
    errors: () => errors,
    async state() {
      child.stdin.write("\n");
      return JSON.parse(await line());
    },
    async stop() {
      if (child.exitCode !== null) return;
      child.stdin.end();
      await once(child, "exit");
    },
  };
}
