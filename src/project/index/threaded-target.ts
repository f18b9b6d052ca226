import { Worker } from "node:worker_threads";
import { ownModule } from "../../base/own-module.ts";
import type { PassSteps } from "../pass-steps.ts";
import type { BuildTarget } from "./build-target.ts";
import type { BuildReply, BuildRequest } from "./build-thread.ts";
import { packEntries } from "./entry-batch.ts";
import { removeDatabase } from "./index-build.ts";

/** Batches that may wait for the other thread; more would only take memory. */
const maxWaiting = 2;

/** Writes on a thread of its own, so that reading and writing use a core each. */
export function createThreadedTarget(file: string): BuildTarget {
  const worker = new Worker(ownModule("project/index/build-thread"), {
    workerData: file,
    // Flags of the process can be such as make sense for its main module only.
    execArgv: [],
    // Nearly all that the thread allocates is short-lived: the texts of one batch.
    resourceLimits: { maxYoungGenerationSizeMb: 16 },
  });
  let waiting = 0;
  let isFinished = false;
  let failure: Error | undefined;
  let wake: (() => void) | undefined;
  const settle = (): void => {
    wake?.();
    wake = undefined;
  };
  const fail = (error: Error): void => {
    failure ??= error;
    settle();
  };
  worker.on("message", (reply: BuildReply) => {
    if (reply.kind === "failed") fail(reply.error);
    else if (reply.kind === "finished") isFinished = true;
    waiting -= 1;
    settle();
  });
  worker.on("error", (error) => fail(error instanceof Error ? error : new Error(String(error))));
  worker.on("exit", () => fail(new Error("The thread that writes the index has stopped.")));

  const waitUntil = function* (isDone: () => boolean): PassSteps<void> {
    while (failure === undefined && !isDone()) {
      yield { wait: new Promise<void>((resolve) => (wake = resolve)) };
    }
    if (failure !== undefined && !isFinished) throw failure;
  };
  const send = (request: BuildRequest): void => {
    waiting += 1;
    worker.postMessage(request);
  };

  return {
    *put(entries) {
      yield* waitUntil(() => waiting <= maxWaiting);
      send({ kind: "put", batch: packEntries(entries) });
    },
    *finish(rest) {
      send({ kind: "finish", rest });
      yield* waitUntil(() => isFinished);
    },
    *close() {
      if (isFinished) return worker.unref();
      yield { wait: worker.terminate() };
      removeDatabase(file);
    },
  };
}
