import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { apiKey, webhookSecret } from "./target-project.ts";

/** The environment variables of outputs in tests. */
export const outputVariables: Readonly<Record<string, string>> = {
  KIT_API_KEYS: apiKey,
  CHAT_SECRET: webhookSecret,
};

/** A server process, which prints its address on its first lines: `Open http://…`, `At http://…` or `Ready on http://…`. */
export class ServerOutput {
  readonly #command: readonly string[];
  readonly #env: Readonly<Record<string, string>>;
  #child: ChildProcess | undefined;
  #url = "";
  log = "";

  constructor(command: readonly string[], env: Readonly<Record<string, string>> = {}) {
    this.#command = command;
    this.#env = env;
  }

  get url(): string {
    return this.#url;
  }

  async start(): Promise<void> {
    const [file = "", ...args] = this.#command;
    const { PATH, HOME, TMPDIR } = process.env;
    const env = { PATH, HOME, TMPDIR, ...outputVariables, ...this.#env };
    // In a process group with the processes that it starts.
    const child = spawn(file, args, { cwd: "/", env, stdio: ["ignore", "pipe", "pipe"], detached: true });
    this.#child = child;
    this.log = "";
    this.#url = await new Promise<string>((resolve, reject) => {
      const collect = (chunk: Buffer): void => {
        this.log += chunk.toString();
        const [, url] = /\b(?:at|on|open) (http:\/\/\S+)/i.exec(this.log) ?? [];
        if (url !== undefined) resolve(url.replace("0.0.0.0", "127.0.0.1"));
      };
      child.stdout.on("data", collect);
      child.stderr.on("data", collect);
      child.once("exit", (code) => reject(new Error(`It ended with ${code}: ${this.log}`)));
    });
  }

  async restart(): Promise<void> {
    await this.end("SIGKILL");
    await this.start();
  }

  /** The id of the server's user. */
  async user(): Promise<number> {
    const status = await readFile(`/proc/${await serverIn(this.#child?.pid ?? 0)}/status`, "latin1");
    return Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]);
  }

  /** Signals the server, or its whole process group, and returns the exit code; null after a kill. */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#child;
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null)
      return child?.exitCode ?? null;
    const ended = once(child, "exit");
    process.kill(signal === "SIGTERM" ? await serverIn(child.pid) : -child.pid, signal);
    return (await ended)[0];
  }
}

/** Returns the serving process of a group: a program that starts containers forwards signals, and ends in another way. */
async function serverIn(group: number): Promise<number> {
  for (const name of await readdir("/proc").catch(() => [])) {
    if (!/^\d+$/.test(name)) continue;
    const stat = await readFile(`/proc/${name}/stat`, "latin1").catch(() => "");
    const command = await readFile(`/proc/${name}/cmdline`, "latin1").catch(() => "");
    const [, , inGroup] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (Number(inGroup) === group && /^(\S*\/)?node\0/.test(command)) return Number(name);
  }
  return group;
}
