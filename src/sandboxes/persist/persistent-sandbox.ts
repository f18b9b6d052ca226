import { lstat, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { hasCode } from "../../files/obstacle.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import type { StoredWorkspace, WorkspaceStore } from "../../protocol/workspace-store.ts";
import type { Sandbox, SandboxFactory, SandboxOwner } from "../contract.ts";
import {
  digestOf,
  type FileEntry,
  type KnownFiles,
  type ManifestEntry,
  parseManifest,
  piecesOfFile,
  scanWorkspace,
  unlessGone,
} from "./manifest.ts";
import { restoreWorkspace } from "./restore.ts";

export interface PersistOptions {
  readonly store: WorkspaceStore;
  /** Bytes of all files of a workspace. */
  readonly maxBytes: number;
  /** The fence of this machine's lease on the session's instance, asked when a workspace is opened: an opener keeps it. */
  readonly fenceOf?: ((key: SessionKey) => number | undefined) | undefined;
}

/** How often a workspace is read again that changes while it is read. */
const readings = 5;

/**
 * Keeps the workspaces of a sandbox in a store: what a call has changed is kept before the call gives its result, and the next
 * owner of the instance, on whichever machine, begins with it. For sandboxes whose workspaces are folders of the session's own.
 */
export function persistWorkspaces(inner: SandboxFactory, options: PersistOptions): SandboxFactory {
  /** How many sandboxes are open on each folder. */
  const open = new Map<string, number>();
  const folderOf = (owner: SandboxOwner): string => {
    const place = inner.locate?.(owner);
    if (place === undefined || place.shared) throw notOwn(inner.name);
    return place.folder;
  };
  /** A sandbox whose folder holds what the store has. */
  const openKept = async (context: SandboxOwner, archive: (folder: string) => Archive): Promise<Sandbox> => {
    // It makes the folder, and refuses one that leads elsewhere.
    let sandbox = await inner.open(context);
    try {
      const folder = folderOf(context);
      const kept = archive(folder);
      const isKept = await kept.restore();
      if (isKept || (await isMarked(folder))) {
        await sandbox.close();
        if (!isKept) {
          // Another machine has deleted the session: its files do not come back with the next one of that name.
          await inner.remove?.(context);
          await rm(markOf(folder), { force: true });
        }
        sandbox = await inner.open(context);
      }
      // A new workspace may begin with files. One that is too large opens, so that files can be removed.
      await kept.save().catch((error: unknown) => {
        if (!(error instanceof KitError && error.code === "payload_too_large")) throw error;
      });
      open.set(folder, (open.get(folder) ?? 0) + 1);
      const close = closeOnce(sandbox, () => {
        const left = (open.get(folder) ?? 1) - 1;
        if (left > 0) open.set(folder, left);
        else open.delete(folder);
      });
      return saving(sandbox, kept, close);
    } catch (error) {
      await sandbox.close();
      throw error;
    }
  };
  return {
    ...inner,
    open: async (context) =>
      await openKept(context, (folder) => new Archive(folder, keyOf(context), options)),
    // Another machine may have changed it: what lies in the folder counts once the sandbox is open.
    locate(owner) {
      const place = inner.locate?.(owner);
      return place !== undefined && open.has(place.folder) ? place : undefined;
    },
    async remove(owner) {
      const folder = inner.locate?.(owner)?.folder;
      await inner.remove?.(owner);
      await options.store.remove(keyOf(owner));
      if (folder !== undefined) await rm(markOf(folder), { force: true });
    },
  };
}

function keyOf({ agent, instance_id, session }: SandboxOwner): SessionKey {
  return { agent, instance_id, session };
}

/** Beside a folder whose files the store has had. */
function markOf(folder: string): string {
  return `${folder}.kept`;
}

async function isMarked(folder: string): Promise<boolean> {
  return (await lstat(markOf(folder)).catch(() => undefined)) !== undefined;
}

function closeOnce(sandbox: Sandbox, onClose: () => void): () => Promise<void> {
  let closing: Promise<void> | undefined;
  return () => {
    if (closing === undefined) {
      closing = sandbox.close();
      onClose();
    }
    return closing;
  };
}

/** A sandbox whose changing calls resolve once the change is kept. */
function saving(inner: Sandbox, archive: Archive, close: () => Promise<void>): Sandbox {
  const after =
    <Arguments extends unknown[], Result>(call: (...given: Arguments) => Promise<Result>) =>
    async (...given: Arguments): Promise<Result> => {
      await archive.renew();
      try {
        return await call.apply(inner, given);
      } finally {
        await archive.save();
      }
    };
  return new Proxy(inner, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (name === "at") return (cwd: string) => saving(target.at(cwd), archive, close);
      if (name === "close") return close;
      if (typeof value !== "function") return value;
      if (changing.has(String(name))) return after(value as (...given: unknown[]) => Promise<unknown>);
      return value.bind(target) as unknown;
    },
  });
}

const changing = new Set(["writeFile", "writeBytes", "mkdir", "rm", "edit", "exec", "upload"]);

/** The workspace of one session in the store, and on this machine. */
class Archive {
  readonly #root: string;
  readonly #key: SessionKey;
  readonly #options: PersistOptions;
  readonly #fence: number | undefined;
  readonly #known: KnownFiles = new Map();
  #version = 0;
  #manifest = "";
  #stored = new Set<string>();
  /** A manifest whose commit got no answer: the store may have it. */
  #unanswered: string | undefined;
  /** Whether another writer has changed the workspace in the store. */
  #isBehind = false;
  #isMarked = false;
  #renewing: Promise<void> | undefined;
  #saving: Promise<void> = Promise.resolve();
  /** A save that has not begun; those who ask meanwhile share it. */
  #next: Promise<void> | undefined;

  constructor(root: string, key: SessionKey, options: PersistOptions) {
    this.#root = root;
    this.#key = key;
    this.#options = options;
    // A later lease of this machine is not the opener's: what it left half done is not kept under that.
    this.#fence = options.fenceOf?.(key);
  }

  /** Makes the folder what the store has; where it has nothing (false), the folder stays as it is. */
  async restore(): Promise<boolean> {
    const { store } = this.#options;
    const found = await store.read(this.#key);
    if (found === undefined) return false;
    const entries = parseManifest(found.manifest);
    await restoreWorkspace(this.#root, entries, {
      known: this.#known,
      read: (name) => store.readPiece(this.#key, name),
    });
    this.#adopt(found);
    await this.#mark();
    return true;
  }

  /** Begins a call: after a change by another writer, the folder is what that has made of it. */
  async renew(): Promise<void> {
    if (!this.#isBehind) return;
    this.#renewing ??= this.#restoreAfter(this.#saving);
    this.#saving = this.#renewing;
    await this.#renewing;
  }

  async #restoreAfter(saving: Promise<void>): Promise<void> {
    try {
      await saving.catch(() => undefined);
      if (!(await this.restore())) throw changedElsewhere();
    } finally {
      this.#renewing = undefined;
    }
  }

  /** Resolves once all that had changed when it was called is kept. */
  save(): Promise<void> {
    this.#next ??= this.#saving
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined;
        this.#saving = this.#write();
        return this.#saving;
      });
    return this.#next;
  }

  async #write(): Promise<void> {
    for (let reading = 1; ; reading += 1) {
      const entries = await scanWorkspace(this.#root, this.#known, this.#options.maxBytes);
      const manifest = JSON.stringify({ entries });
      const isNothing = entries.length === 0 && this.#version === 0;
      if ((manifest === this.#manifest || isNothing) && this.#unanswered === undefined) return;
      if ((await this.#storePieces(entries)) && (await this.#commit(entries, manifest))) {
        await this.#mark();
        return;
      }
      if (reading === readings) throw unsteady();
    }
  }

  /** False where the store turns out to have an earlier commit of this writer, whose answer was lost. */
  async #commit(entries: readonly ManifestEntry[], manifest: string): Promise<boolean> {
    const { store } = this.#options;
    const pieces = [...new Set(entries.flatMap(piecesOf))];
    const earlier = this.#unanswered;
    this.#unanswered = manifest;
    try {
      await store.commit(this.#key, { expected: this.#version, manifest, pieces, fence: this.#fence });
    } catch (error) {
      if (!(error instanceof KitError)) throw error;
      if (error.code === "lease_lost") this.#unanswered = undefined;
      if (error.code !== "conflict") throw error;
      const found = await store.read(this.#key);
      this.#unanswered = undefined;
      const isOwn = found?.version === this.#version + 1 && [manifest, earlier].includes(found.manifest);
      this.#isBehind = !isOwn;
      if (!isOwn) throw changedElsewhere(error);
      this.#adopt(found);
      return found.manifest === manifest;
    }
    this.#adopt({ version: this.#version + 1, manifest });
    return true;
  }

  #adopt({ version, manifest }: StoredWorkspace): void {
    this.#version = version;
    this.#manifest = manifest;
    this.#stored = new Set(parseManifest(manifest).flatMap(piecesOf));
    this.#unanswered = undefined;
    this.#isBehind = false;
  }

  /** A folder without the mark is of a time before workspaces were kept: the store's silence about it means nothing. */
  async #mark(): Promise<void> {
    if (this.#isMarked) return;
    await writeFile(markOf(this.#root), JSON.stringify(this.#key), { flag: "wx", mode: 0o600 }).catch(
      (error: unknown) => {
        if (!hasCode(error, "EEXIST")) throw error;
      },
    );
    this.#isMarked = true;
  }

  /** Writes the pieces that the store has not. False where a file has changed since it was read. */
  async #storePieces(entries: readonly ManifestEntry[]): Promise<boolean> {
    for (const entry of entries) {
      if (entry.kind !== "file" || entry.pieces.every((name) => this.#stored.has(name))) continue;
      if (!(await this.#storeFile(entry))) return false;
    }
    return true;
  }

  async #storeFile({ path, pieces }: FileEntry): Promise<boolean> {
    const stored = async (): Promise<boolean> => {
      let index = 0;
      for await (const piece of piecesOfFile(join(this.#root, path))) {
        const name = digestOf(piece);
        if (pieces[index] !== name) return false;
        if (!this.#stored.has(name)) await this.#options.store.writePiece(this.#key, name, piece);
        this.#stored.add(name);
        index += 1;
      }
      return index === pieces.length;
    };
    return (await unlessGone(path, stored())) ?? false;
  }
}

function piecesOf(entry: ManifestEntry): readonly string[] {
  return entry.kind === "file" ? entry.pieces : [];
}

function unsteady(): KitError {
  return new KitError({
    code: "unavailable",
    message:
      "The workspace keeps changing while kit reads it, so the latest changes are not saved for other machines.",
    meta: { retry_after_s: 1 },
  });
}

function changedElsewhere(cause?: unknown): KitError {
  return new KitError({
    code: "conflict",
    message: "Another writer has changed the files of this session: what this call has changed is not kept.",
    hint: "The next call finds them as they are now. Do again what is missing.",
    cause,
  });
}

function notOwn(name: string): KitError {
  return new KitError({
    code: "invalid_request",
    message: `sandbox.persist saves workspaces that belong to one session, and the sandbox "${name}" has none on this machine.`,
    hint: 'It goes with agent.sandbox = "virtual".',
  });
}
