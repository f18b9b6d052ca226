import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { onTestFinished } from "vitest";
import type { EngineNews, EngineOrder, EngineProcessSettings } from "./serve-process.ts";

/** An engine in another process, which a test controls. */
export interface EngineProcess {
  readonly pid: number;
  readonly news: readonly EngineNews[];
  notify(order: EngineOrder): void;
  /** Resolves with the first message of a kind, earlier messages included. */
  collect<News extends EngineNews["news"]>(
    news: News,
    after?: number,
  ): Promise<Extract<EngineNews, { news: News }>>;
  signal(signal: NodeJS.Signals): void;
  /** Resolves once the process has ended and all its messages were received. */
  ended(): Promise<void>;
}

const script = new URL("serve-process.ts", import.meta.url);

export async function startEngineProcess(settings: EngineProcessSettings): Promise<EngineProcess> {
  const child: ChildProcess = fork(script, [JSON.stringify(settings)], { execArgv: [] });
  const { pid } = child;
  if (pid === undefined) throw new Error("The process was not started.");
  // One that stays stopped after a failed test would keep the whole run of tests open.
  onTestFinished(() => void child.kill("SIGKILL"));
  const news: EngineNews[] = [];
  child.on("message", (one: EngineNews) => news.push(one));
  const closed = once(child, "close");

  const engine: EngineProcess = {
    pid,
    news,
    notify: (order) => void child.send(order),
    async collect(kind, after = 0) {
      for (;;) {
        const found = news.slice(after).find((one) => one.news === kind);
        if (found !== undefined) return found as Extract<EngineNews, { news: typeof kind }>;
        await Promise.race([
          once(child, "message"),
          closed.then(() => Promise.reject(new Error("The process has ended."))),
        ]);
      }
    },
    signal: (name) => void child.kill(name),
    async ended() {
      await closed;
    },
  };
  await engine.collect("ready");
  return engine;
}
