import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { ownModule } from "../../base/own-package.ts";
import type { FileEntry, IndexBatch, WriteResult } from "./index-writer.ts";
import type { WriterReply, WriterRequest, WriterThreadData } from "./writer-thread.ts";

/** Writes batches in the order of the calls. */
export interface IndexWriter {
  /** Adds files to the next batch. Call it with a few at a time: they are copied to the thread. */
  add(files: readonly FileEntry[]): void;
  /** After an outdated batch, all later batches are outdated. */
  write(batch: IndexBatch): Promise<WriteResult>;
  /** Drops batches that are not written yet. */
  close(): Promise<void>;
}

/** Writes on a separate thread: reading and writing use a core each, and no reader waits for a commit. */
export function createThreadedWriter(workerData: WriterThreadData): IndexWriter {
  const worker = new Worker(ownModule("project/store/writer-thread"), {
    workerData,
    // Some flags of the process are valid for its main module only.
    execArgv: [],
    // Nearly all that the thread allocates is short-lived: the texts of one batch.
    resourceLimits: { maxYoungGenerationSizeMb: 16 },
  });
  const waiting: PromiseWithResolvers<WriteResult>[] = [];
  let failure: unknown;
  const fail = (error: unknown): void => {
    failure ??= error;
    for (const { reject } of waiting.splice(0)) reject(failure);
  };
  worker.on("message", (reply: WriterReply) => {
    if ("error" in reply) fail(withCode(reply));
    else waiting.shift()?.resolve(reply.result);
  });
  worker.on("error", fail);
  worker.on("exit", () => fail(new Error("The thread that writes the index has stopped.")));
  return {
    add: (files) => worker.postMessage({ kind: "add", files } satisfies WriterRequest),
    async write(batch) {
      if (failure !== undefined) throw failure;
      const reply = Promise.withResolvers<WriteResult>();
      // A pass that fails elsewhere leaves it unhandled.
      reply.promise.catch(() => undefined);
      waiting.push(reply);
      worker.postMessage({ kind: "write", batch } satisfies WriterRequest);
      return await reply.promise;
    },
    async close() {
      if (failure !== undefined || waiting.length > 0) {
        await worker.terminate();
        return;
      }
      const exit = once(worker, "exit");
      worker.postMessage({ kind: "close" } satisfies WriterRequest);
      await exit;
    },
  };
}

function withCode({ error, errcode }: Extract<WriterReply, { readonly error: unknown }>): unknown {
  return error instanceof Error && errcode !== undefined ? Object.assign(error, { errcode }) : error;
}
