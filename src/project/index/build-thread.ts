import { parentPort, workerData } from "node:worker_threads";
import { type EntryBatch, unpackEntries } from "./entry-batch.ts";
import { type BuildRest, createIndexBuild } from "./index-build.ts";

/** What the thread of `threaded-target.ts` is asked, and what it answers, one for one. */
export type BuildRequest =
  | { readonly kind: "put"; readonly batch: EntryBatch }
  | { readonly kind: "finish"; readonly rest: BuildRest };
export type BuildReply =
  | { readonly kind: "written" | "finished" }
  | { readonly kind: "failed"; readonly error: Error };

const build = createIndexBuild(String(workerData));

parentPort?.on("message", (request: BuildRequest) => {
  parentPort?.postMessage(answer(request));
});

function answer(request: BuildRequest): BuildReply {
  try {
    if (request.kind === "put") {
      build.put(unpackEntries(request.batch));
      return { kind: "written" };
    }
    build.finish(request.rest);
    // Nothing more is asked; the thread ends once the answer is sent.
    parentPort?.removeAllListeners("message");
    return { kind: "finished" };
  } catch (error) {
    return { kind: "failed", error: error instanceof Error ? error : new Error(String(error)) };
  }
}
