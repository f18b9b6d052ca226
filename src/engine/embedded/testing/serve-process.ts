import { appendFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { KitError } from "../../../base/kit-error.ts";
import type { AdmitRequest } from "../../contract.ts";
import type { EngineLimits } from "../../shared/engine-base.ts";
import { createEmbeddedEngine } from "../create-embedded-engine.ts";

/**
 * A process with an engine, which a test controls over IPC, kills, freezes or deprives of its disk.
 * `fork(serve-process.ts, [JSON of EngineProcessSettings])`
 */

export interface EngineProcessSettings {
  readonly folder: string;
  readonly limits?: Partial<EngineLimits>;
  /** Gets a line `instance number` for each attempt that begins. */
  readonly log?: string;
  /**
   * `quick`: the handler ends at once or a few milliseconds later. `hold`: it waits for its signal, and then succeeds.
   * `poison`: it ends after a moment, but the input "poison" kills the process. `idle`: like `hold`, and it only waits.
   */
  readonly work: "quick" | "hold" | "poison" | "idle";
}

export type EngineOrder =
  | { readonly order: "start" | "drain" }
  | { readonly order: "admit"; readonly request: AdmitRequest }
  /** Admits numbered inputs to a number of instances, one after the other in each, until the process is killed. */
  | { readonly order: "load"; readonly instances: number; readonly from: number };

export type EngineNews =
  | { readonly news: "ready" | "started" | "drained" }
  | { readonly news: "admitted"; readonly dispatch_id: string }
  | { readonly news: "refused"; readonly code: string }
  | { readonly news: "begun"; readonly dispatch_id: string }
  | { readonly news: "aborted"; readonly code: string };

const settings: EngineProcessSettings = JSON.parse(process.argv[2] ?? "{}");
const { log, work } = settings;
const engine = createEmbeddedEngine(settings);
const print = (news: EngineNews): void => {
  process.send?.(news);
};

async function start(): Promise<void> {
  await engine.start({
    run: async () => undefined,
    async dispatch({ id, signal, setIdle }, { instance_id, input }) {
      if (log !== undefined) appendFileSync(log, `${instance_id} ${String(input)}\n`);
      print({ news: "begun", dispatch_id: id });
      if (work === "quick") {
        if (Number(input) % 3 === 0) await setTimeout(Number(input) % 5);
        return process.pid;
      }
      if (work === "poison") {
        await setTimeout(input === "poison" ? 50 : 500);
        if (input === "poison") process.kill(process.pid, "SIGKILL");
        return process.pid;
      }
      if (work === "idle") setIdle?.(true);
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      print({ news: "aborted", code: signal.reason instanceof KitError ? signal.reason.code : "" });
      return "too late";
    },
  });
  print({ news: "started" });
}

async function admit(request: AdmitRequest): Promise<void> {
  try {
    print({ news: "admitted", dispatch_id: (await engine.admit(request)).dispatch_id });
  } catch (error) {
    print({ news: "refused", code: error instanceof KitError ? error.code : String(error) });
  }
}

async function load(instances: number, from: number): Promise<never> {
  for (let input = from; ; input += 1) {
    const requests = Array.from({ length: instances }, (_, index) => ({
      agent: "worker",
      instance_id: `i${index}`,
      session: "default",
      input,
    }));
    await Promise.all(requests.map(admit));
    if (input % 10 === 0) await setTimeout(2);
  }
}

async function obey(order: EngineOrder): Promise<void> {
  switch (order.order) {
    case "start":
      return await start();
    case "admit":
      return await admit(order.request);
    case "load":
      return await load(order.instances, order.from);
    case "drain":
      await engine.drain({ timeoutMs: 0 });
      print({ news: "drained" });
      process.disconnect();
  }
}

process.on("message", (order: EngineOrder) => {
  void obey(order).catch((error: unknown) => {
    throw error;
  });
});
print({ news: "ready" });
