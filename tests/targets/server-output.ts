import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { apiKey, webhookSecret } from "./target-project.ts";

/** The variables with which outputs of the tests run. */
export const outputVariables: Readonly<Record<string, string>> = {
  KIT_API_KEYS: apiKey,
  CHAT_SECRET: webhookSecret,
};

/** A server in a process of its own, which says on its first lines where it listens. */
export class ServerOutput {
  readonly #command: readonly [string, ...string[]];
  readonly #cwd: string;
  #child: ChildProcess | undefined;
  #url = "";
  log = "";

  constructor(command: readonly [string, ...string[]], cwd: string) {
    this.#command = command;
    this.#cwd = cwd;
  }

  get url(): string {
    return this.#url;
  }

  async start(): Promise<void> {
    const [file, ...args] = this.#command;
    const { PATH, HOME, TMPDIR } = process.env;
    const env = { PATH, HOME, TMPDIR, ...outputVariables };
    const child = spawn(file, args, { cwd: this.#cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    this.#child = child;
    this.#url = await new Promise<string>((resolve, reject) => {
      const hear = (chunk: Buffer): void => {
        this.log += chunk.toString();
        const [, url] = / at (http:\/\/\S+)/.exec(this.log) ?? [];
        if (url !== undefined) resolve(url);
      };
      this.log = "";
      child.stdout.on("data", hear);
      child.stderr.on("data", hear);
      child.once("exit", (code) => reject(new Error(`It ended with ${code}: ${this.log}`)));
    });
  }

  async restart(): Promise<void> {
    await this.end("SIGKILL");
    await this.start();
  }

  /** Gives the exit code; null after a kill. */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null) return child?.exitCode ?? null;
    const ended = once(child, "exit");
    child.kill(signal);
    return (await ended)[0];
  }
}
