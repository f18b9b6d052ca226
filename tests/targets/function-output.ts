import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { ServedOutput } from "./served-cases.ts";
import { outputVariables } from "./server-output.ts";

/** A process of a function, and its open calls. The platform freezes it while there are none. */
interface Worker {
  readonly child: ChildProcess;
  readonly port: Promise<number>;
  calls: number;
}

export interface FunctionOptions {
  readonly platform: "vercel" | "netlify";
  /** The folders of the function that answers requests, and of the scheduled one; the same for Vercel. */
  readonly folder: string;
  readonly scheduled: string;
  readonly env: Readonly<Record<string, string>>;
  /** How many calls a process handles in parallel. */
  readonly concurrency: number;
}

export const cronSecret = "secret-of-the-scheduled-call";

/**
 * A simulated platform for the workers of a function. It starts workers when calls come, freezes a worker (SIGSTOP) as soon as it has no
 * open call, resumes it (SIGCONT) for the next call, and makes the scheduled call once a second.
 */
export class FunctionOutput implements ServedOutput {
  readonly #options: FunctionOptions;
  readonly #workers = new Map<string, Worker[]>();
  readonly #server: Server;
  #url = "";
  #over = false;
  #cron: Promise<void> | undefined;
  log = "";
  frozen = 0;

  constructor(options: FunctionOptions) {
    this.#options = options;
    this.#server = createServer((incoming, outgoing) => {
      void this.#call(options.folder, incoming, outgoing);
    });
  }

  get url(): string {
    return this.#url;
  }

  async start({ cron = true }: { readonly cron?: boolean } = {}): Promise<void> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    const address = this.#server.address();
    this.#url = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
    if (cron) this.#cron = this.#schedule();
  }

  /** Kills all workers; the next calls start new ones. */
  async restart(): Promise<void> {
    const all = [...this.#workers.values()].flat();
    this.#workers.clear();
    await Promise.all(all.map((worker) => kill(worker)));
  }

  /** The process ids of the function that answers requests. */
  pids(): readonly number[] {
    return (this.#workers.get(this.#options.folder) ?? []).map(({ child }) => child.pid ?? 0);
  }

  /** Resolves once there is no open call. */
  async atRest(): Promise<void> {
    while ([...this.#workers.values()].flat().some(({ calls }) => calls > 0)) await delay(20);
  }

  async stopSchedule(): Promise<void> {
    this.#over = true;
    await this.#cron;
    await this.atRest();
  }

  async end(): Promise<void> {
    this.#over = true;
    this.#server.closeAllConnections();
    this.#server.close();
    await this.restart();
    await this.#cron;
  }

  /** Makes the scheduled call and returns its status. */
  async callScheduled(): Promise<number> {
    const { scheduled } = this.#options;
    const worker = this.#take(scheduled);
    const headers = { Authorization: `Bearer ${cronSecret}`, host: "shop.example" };
    try {
      const port = await worker.port;
      const reply = await fetch(`http://127.0.0.1:${port}/_kit/work`, { headers });
      await reply.arrayBuffer();
      return reply.status;
    } catch {
      this.#release(worker);
      return 0;
    }
  }

  async #schedule(): Promise<void> {
    while (!this.#over) {
      await this.callScheduled();
      await delay(1_000);
    }
  }

  async #call(folder: string, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const worker = this.#take(folder);
    outgoing.on("error", () => undefined);
    try {
      const port = await worker.port;
      const { method, url: path, headers } = incoming;
      const upstream = request({ host: "127.0.0.1", port, method, path, headers, agent: false });
      upstream.on("response", (reply) => {
        outgoing.writeHead(reply.statusCode ?? 500, reply.headers);
        reply.pipe(outgoing);
      });
      upstream.on("error", () => outgoing.destroy());
      outgoing.once("close", () => outgoing.writableFinished || upstream.destroy());
      incoming.pipe(upstream);
    } catch {
      this.#release(worker);
      outgoing.destroy();
    }
  }

  #take(folder: string): Worker {
    const workers = this.#workers.get(folder) ?? [];
    this.#workers.set(folder, workers);
    let worker = workers.find(({ calls }) => calls < this.#options.concurrency);
    if (worker === undefined) {
      worker = this.#begin(folder);
      workers.push(worker);
    } else worker.child.kill("SIGCONT");
    worker.calls += 1;
    return worker;
  }

  #release(worker: Worker): void {
    worker.calls -= 1;
    if (worker.calls > 0 || worker.child.exitCode !== null) return;
    worker.child.kill("SIGSTOP");
    this.frozen += 1;
  }

  #begin(folder: string): Worker {
    const { platform, env } = this.#options;
    const { PATH, HOME, TMPDIR } = process.env;
    const file = fileURLToPath(new URL("./function-worker.ts", import.meta.url));
    const child = fork(file, [platform, folder], {
      cwd: "/",
      env: { PATH, HOME, TMPDIR, CRON_SECRET: cronSecret, ...outputVariables, ...env },
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      execArgv: [],
    });
    const onOutput = (chunk: Buffer): void => {
      this.log += chunk.toString();
    };
    child.stdout?.on("data", onOutput);
    child.stderr?.on("data", onOutput);
    const listening = Promise.withResolvers<number>();
    listening.promise.catch(() => undefined);
    child.once("exit", () => listening.reject(new Error(`The worker has ended: ${this.log}`)));
    const worker: Worker = { child, port: listening.promise, calls: 0 };
    child.on("message", (message) => {
      if (message === "rests") this.#release(worker);
      else listening.resolve((message as { readonly port: number }).port);
    });
    return worker;
  }
}

async function kill({ child }: Worker): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}
