import { createHash, randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { open, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { KitError } from "../../../base/kit-error.ts";
import { storeUnavailable } from "../../../protocol/store-fault.ts";
import type { Blobs } from "../../shared/engine-base.ts";
import { parseStored } from "../../shared/stored-json.ts";

/** In bytes of UTF-8: what is larger gets a file of its own. */
const largestInline = 256 * 1024;
/** No JSON text begins so, whatever the value: a reference cannot be mistaken. */
const prefix = "blob:";
/** A file may be older than the row that names it, by a moment. This is far more. */
const graceMs = 3_600_000;

export interface BlobStore extends Blobs {
  /** Removes the files that no row names any more, and that were not stored within the last hour. */
  sweep(now: number): Promise<void>;
}

/** Large payloads as files, named after the SHA-256 of their content; inline when there is no folder. */
export function createBlobStore(folder: string | undefined, database: DatabaseSync): BlobStore {
  if (folder === undefined) {
    return {
      store: async (value) => toText(value),
      load: parseStored,
      size: (text) => text.length,
      sweep: async () => {},
    };
  }
  mkdirSync(folder, { recursive: true });
  const isUsed = database.prepare("SELECT 1 FROM blob_uses WHERE blob = ? LIMIT 1");
  const fileOf = (hash: string): string => join(folder, `${hash}.json`);

  return {
    async store(value) {
      const text = toText(value);
      // A character takes three bytes of UTF-8 at most: short texts need no count.
      if (text.length * 3 <= largestInline || Buffer.byteLength(text) <= largestInline) return text;
      const hash = createHash("sha256").update(text).digest("hex");
      await writeBlob(folder, fileOf(hash), text);
      return prefix + hash;
    },
    load: createBlobReader(folder),
    size(stored) {
      if (!stored.startsWith(prefix)) return stored.length;
      return statSync(fileOf(stored.slice(prefix.length)), { throwIfNoEntry: false })?.size ?? 0;
    },
    async sweep(now) {
      for (const name of await readdir(folder)) {
        const file = join(folder, name);
        if (isUsed.get(prefix + name.replace(/\.json$/, "")) !== undefined) continue;
        const info = await stat(file).catch(() => undefined);
        if (info !== undefined && now - info.mtimeMs > graceMs) await rm(file, { force: true });
      }
    },
  };
}

/** Reads what a store of a folder was given. */
export function createBlobReader(folder: string): (stored: string) => unknown {
  return (stored) =>
    parseStored(
      stored.startsWith(prefix) ? readPayload(join(folder, `${stored.slice(prefix.length)}.json`)) : stored,
    );
}

function readPayload(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw lost(cause);
  }
}

function toText(value: unknown): string {
  const text = JSON.stringify(value) as string | undefined;
  return text ?? "null";
}

/** Whole or not at all: a file has its name only once its content is on disk. */
async function writeBlob(folder: string, file: string, text: string): Promise<void> {
  if (existsSync(file)) {
    // Young again, so that a sweep does not take it before the row that is about to name it is there.
    const now = new Date();
    const refreshed = await utimes(file, now, now).then(
      () => true,
      () => false,
    );
    if (refreshed) return;
  }
  const draft = join(folder, `${randomUUID()}.tmp`);
  try {
    await write(draft, text);
    await rename(draft, file);
    await syncFolder(folder);
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined);
    throw cannotStore(error);
  }
}

async function write(file: string, text: string): Promise<void> {
  const handle = await open(file, "wx");
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** The new name itself must be on disk. Windows does not open folders, and needs no such thing. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function cannotStore(cause: unknown): KitError {
  return storeUnavailable({
    store: "The engine's store",
    reason: "a large payload could not be written",
    hint: "Look at the disk of the engine's folder.",
    cause,
  });
}

function lost(cause: unknown): KitError {
  return new KitError({ code: "internal_error", message: "A stored payload is gone.", cause });
}
