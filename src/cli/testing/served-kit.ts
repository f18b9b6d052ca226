import { beginKit, type RunningKit, type RunOptions } from "./run-kit.ts";

/** A server that the command line runs. */
export interface ServedKit {
  readonly url: string;
  stdout(): string;
  stderr(): string;
  /** Resolves once stderr holds a text. */
  hasOutput(text: string): Promise<void>;
  stop(signal: NodeJS.Signals): Promise<number | null>;
}

/** The servers that a test has started. */
export type Running = Map<RunningKit, NodeJS.Signals>;

/** Ends what a test has left running, and waits until nothing of it answers any more. */
export async function endAll(running: Running): Promise<void> {
  const lines = [...running];
  running.clear();
  for (const [line, signal] of lines) line.signal(signal);
  await Promise.all(lines.map(([{ ended }]) => ended));
}

/**
 * Starts `kit start` or `kit dev` and waits until it says where it is: in this process, or with `beginProcess` in one
 * of its own.
 */
export async function serveKit(
  running: Running,
  command: readonly string[],
  { begin = beginKit, ...options }: RunOptions & { readonly begin?: typeof beginKit },
): Promise<ServedKit> {
  const line = begin(command, options);
  // A process of its own may hold work that does not end.
  running.set(line, begin === beginKit ? "SIGTERM" : "SIGKILL");
  const { ended } = line;
  const texts = { stdout: "", stderr: "" };
  const waiting = new Set<() => void>();
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  line.stdout.setEncoding("utf8").on("data", (text: string) => {
    texts.stdout += text;
    const url = /http:\/\/[\w.:[\]-]+:\d+/.exec(texts.stdout)?.[0];
    if (url !== undefined && texts.stdout.endsWith("\n")) resolve(url);
  });
  line.stderr.setEncoding("utf8").on("data", (text: string) => {
    texts.stderr += text;
    for (const inspect of waiting) inspect();
  });
  ended.then((code) => reject(new Error(`ended with ${code}: ${texts.stderr}`)), reject);
  return {
    url: await promise,
    stdout: () => texts.stdout,
    stderr: () => texts.stderr,
    hasOutput: (text) =>
      new Promise((found) => {
        const inspect = (): void => {
          if (!texts.stderr.includes(text)) return;
          waiting.delete(inspect);
          found();
        };
        waiting.add(inspect);
        inspect();
      }),
    stop: (signal) => {
      line.signal(signal);
      return ended;
    },
  };
}
