import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { startKit } from "./run-kit.suite.ts";

/** A server that the command line runs. */
export interface ServedKit {
  readonly url: string;
  stdout(): string;
  stderr(): string;
  /** Resolves once stderr holds a text. */
  says(text: string): Promise<void>;
  stop(signal: NodeJS.Signals): Promise<number | null>;
}

/** Kills the processes of a test, and waits until nothing of them answers any more. */
export async function endAll(running: Set<ChildProcess>): Promise<void> {
  const living = [...running].filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
  running.clear();
  for (const child of living) child.kill("SIGKILL");
  await Promise.all(living.map((child) => once(child, "exit")));
}

/** Starts `kit start` or `kit dev` and waits until it says where it is. */
export async function serveKit(
  running: Set<ChildProcess>,
  command: readonly string[],
  options: { readonly cwd: string; readonly env?: Readonly<Record<string, string>> },
): Promise<ServedKit> {
  const child = startKit(command, options);
  running.add(child);
  const texts = { stdout: "", stderr: "" };
  const waiting = new Set<() => void>();
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    texts.stdout += text;
    const url = /http:\/\/[\w.:[\]-]+:\d+/.exec(texts.stdout)?.[0];
    if (url !== undefined && texts.stdout.endsWith("\n")) resolve(url);
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    texts.stderr += text;
    for (const look of waiting) look();
  });
  ended.then((code) => reject(new Error(`ended with ${code}: ${texts.stderr}`)), reject);
  return {
    url: await promise,
    stdout: () => texts.stdout,
    stderr: () => texts.stderr,
    says: (text) =>
      new Promise((found) => {
        const look = (): void => {
          if (!texts.stderr.includes(text)) return;
          waiting.delete(look);
          found();
        };
        waiting.add(look);
        look();
      }),
    stop: (signal) => {
      child.kill(signal);
      return ended;
    },
  };
}
