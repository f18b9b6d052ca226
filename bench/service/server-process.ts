import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";

export interface ServerProcess {
  readonly port: number;
  /** When it was started, by `process.hrtime`. */
  readonly startedAt: bigint;
  /** When its model was first called, by the same clock. */
  readonly firstCall: Promise<bigint>;
  /** Memory in use after a collection. */
  memory(): Promise<Memory>;
  /** Milliseconds of processor time so far. */
  cpuMs(): Promise<number>;
  kill(): Promise<void>;
  stop(): Promise<void>;
}

export interface Memory {
  /** The peak resident memory so far. */
  readonly peak_mb: number;
  readonly heap_mb: number;
  readonly rss_mb: number;
}

/** Starts a subject in a separate process. `KIT_BENCH_SERVER_FLAGS` are flags for its Node, such as `--cpu-prof`. */
export async function startServer(
  subject: string,
  folder: string,
  { holds = true }: { readonly holds?: boolean } = {},
): Promise<ServerProcess> {
  const flags = (process.env.KIT_BENCH_SERVER_FLAGS ?? "").split(" ").filter((flag) => flag !== "");
  const startedAt = process.hrtime.bigint();
  const child = spawn(
    process.execPath,
    ["--expose-gc", ...flags, join(import.meta.dirname, "serve.ts"), subject, folder, `${holds}`],
    { stdio: ["pipe", "pipe", "inherit"] },
  );
  const ended = once(child, "exit");
  const answers: ((line: Record<string, string>) => void)[] = [];
  const listening = Promise.withResolvers<number>();
  const firstCall = Promise.withResolvers<bigint>();
  createInterface({ input: child.stdout }).on("line", (text) => {
    // Libraries also write lines to stdout.
    if (!text.startsWith('{"bench":')) return;
    const line: Record<string, string> = JSON.parse(text).bench;
    if (line.port !== undefined) listening.resolve(Number(line.port));
    else if (line.called_at !== undefined) firstCall.resolve(BigInt(line.called_at));
    else answers.shift()?.(line);
  });
  const ask = async (question: string): Promise<Record<string, string>> => {
    const answer = new Promise<Record<string, string>>((resolve) => answers.push(resolve));
    child.stdin.write(`${question}\n`);
    return await answer;
  };
  const died = ended.then(() => {
    throw new Error(`The server of ${subject} has ended.`);
  });
  died.catch(() => undefined);
  return {
    port: await Promise.race([listening.promise, died]),
    startedAt,
    firstCall: firstCall.promise,
    async memory() {
      const { heap, rss, peak } = await ask("memory");
      return {
        heap_mb: Number(heap) / 2 ** 20,
        rss_mb: Number(rss) / 2 ** 20,
        peak_mb: Number(peak) / 2 ** 10,
      };
    },
    cpuMs: async () => Number((await ask("cpu")).cpu_ms),
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
    async stop() {
      child.stdin.end();
      await ended;
    },
  };
}
