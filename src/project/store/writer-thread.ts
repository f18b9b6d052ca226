import { parentPort, workerData } from "node:worker_threads";
import { isBusy, resultCode } from "../../sqlite/database-file.ts";
import { Connection } from "../../sqlite/statements.ts";
import { type FileEntry, type IndexBatch, type WriteResult, writeBatch } from "./index-writer.ts";
import { configure } from "./open-index.ts";

/** The `workerData` of the thread. */
export interface WriterThreadData {
  readonly file: string;
  /** The inode of the index that the batches are for: another process can have replaced the file. */
  readonly inode: number;
}

export type WriterRequest =
  | { readonly kind: "add"; readonly files: readonly FileEntry[] }
  | { readonly kind: "write"; readonly batch: IndexBatch }
  | { readonly kind: "close" };

/** Its answer to each batch. */
export type WriterReply =
  | { readonly result: WriteResult }
  /** The copy between threads drops the properties of an error, so `errcode` has SQLite's result code. */
  | { readonly error: unknown; readonly errcode: number | undefined };

const { file, inode } = workerData as WriterThreadData;
/** How long a batch waits for other processes that write. */
const maxWaitMs = 600_000;
// Short waits, because the thread cannot be ended during one.
const database = new Connection(file, { timeoutMs: 1000 });
configure(database);
// SQLite writes the changed pages of a batch early where they exceed the cache, and reads them again for their checksums.
database.exec("PRAGMA wal_autocheckpoint = 2000; PRAGMA cache_size = -32768");
// Batches after an outdated one were made for a state that was never written.
let isOutdated = database.inode !== inode;

let added: FileEntry[] = [];

parentPort?.on("message", (request: WriterRequest) => {
  if (request.kind === "add") {
    added.push(...request.files);
    return;
  }
  if (request.kind === "write") {
    const files = [...added, ...(request.batch.files ?? [])];
    added = [];
    parentPort?.postMessage(answer({ ...request.batch, files }));
    return;
  }
  // Otherwise the main thread checkpoints when it closes the index.
  database.exec("PRAGMA wal_checkpoint(PASSIVE)");
  database.close();
  parentPort?.close();
});

function answer(batch: IndexBatch): WriterReply {
  try {
    const result = write(batch);
    isOutdated ||= result.kind === "outdated";
    return { result };
  } catch (error) {
    return { error, errcode: resultCode(error) };
  }
}

function write(batch: IndexBatch): WriteResult {
  const start = performance.now();
  while (!isOutdated) {
    try {
      return writeBatch(database, batch);
    } catch (error) {
      if (!isBusy(error) || performance.now() - start > maxWaitMs) throw error;
    }
  }
  return { kind: "outdated" };
}
