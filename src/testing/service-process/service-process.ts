import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { stopBetweenWrites } from "../stop-between-writes.ts";

/** How long a process can take to end by itself, in ms. */
const endMs = 60_000;

/** A call to a process, with the number that its answer repeats. */
export interface ProcessCall {
  readonly id: number;
  readonly method: string;
  readonly args: readonly unknown[];
}

export interface ServiceProcess {
  /** Calls the service of the process: `dispatch`, `startRun`, `history`, `awaitRun`, … */
  ask(method: string, ...args: readonly unknown[]): Promise<unknown>;
  /** Stops it (SIGSTOP) between two writes. */
  hang(): Promise<void>;
  wake(): void;
  /** Kills it. */
  kill(): Promise<void>;
  /** Resolves once it has ended by itself. */
  ended(): Promise<void>;
}

/** Starts `serve-process.ts` on a project. `leaseMs`: as in `EngineLimits`; `diesAt`: its `KIT_DIES_AT`. */
export async function startServiceProcess(
  root: string,
  mood: "stuck" | "well",
  { leaseMs, diesAt = "" }: { readonly leaseMs?: number | undefined; readonly diesAt?: string } = {},
): Promise<ServiceProcess> {
  const args = [root, mood, ...(leaseMs === undefined ? [] : [`${leaseMs}`])];
  const env = { ...process.env, KIT_DIES_AT: diesAt };
  const child = fork(join(import.meta.dirname, "serve-process.ts"), args, { stdio: "inherit", env });
  const pending = new Map<number, PromiseWithResolvers<unknown>>();
  const exit = once(child, "exit");
  const ready = Promise.withResolvers<void>();
  exit.then(() => {
    const gone = new Error("The process has ended.");
    ready.reject(gone);
    for (const call of pending.values()) call.reject(gone);
  });
  child.on("message", (message: { ready?: true; id?: number; value?: unknown; error?: string }) => {
    if (message.ready) return ready.resolve();
    const call = pending.get(message.id ?? 0);
    pending.delete(message.id ?? 0);
    if (message.error === undefined) call?.resolve(message.value);
    else call?.reject(new Error(message.error));
  });
  await ready.promise;
  const methods: string[] = [];
  return {
    ask(method, ...args) {
      const id = methods.push(method);
      const answer = Promise.withResolvers<unknown>();
      answer.promise.catch(() => undefined);
      pending.set(id, answer);
      child.send({ id, method, args } satisfies ProcessCall, (error) => {
        if (error !== null) answer.reject(error);
      });
      return answer.promise;
    },
    async ended() {
      const late = delay(endMs, undefined, { ref: false }).then(() => {
        const place = diesAt === "" ? "" : ` It was to die ${diesAt}.`;
        const open = [...pending.keys()].map((id) => methods[id - 1]).join(", ");
        throw new Error(
          `The process has not ended within ${endMs / 1_000} s.${place} Its open calls: ${open}.`,
        );
      });
      await Promise.race([exit, late]);
    },
    async hang() {
      if (child.pid === undefined) throw new Error("The process was not started.");
      await stopBetweenWrites(child.pid, root);
    },
    wake: () => void child.kill("SIGCONT"),
    async kill() {
      child.kill("SIGKILL");
      await exit;
    },
  };
}
