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
  /** The limit for all files of one workspace, in bytes. */
  readonly maxBytes: number;
  /** Returns the fence of this machine's lease on the session's instance. Called once per opened workspace. */
  readonly fenceOf?: ((key: SessionKey) => number | undefined) | undefined;
}

/** Scans of a workspace that keeps changing before saving fails. */
const maxScans = 5;

/**
 * Saves the workspaces of a sandbox in a store: a call's changes are saved before the call returns, and the next
 * owner of the instance starts with them, on any machine. For sandboxes whose workspaces belong to one session.
 */
export function persistWorkspaces(inner: SandboxFactory, options: PersistOptions): SandboxFactory {
  /** Open sandboxes by folder. */
  const open = new Map<string, number>();
  const folderOf = (owner: SandboxOwner): string => {
    const location = inner.locate?.(owner);
    if (location === undefined || location.shared) throw noOwnWorkspace(inner.name);
    return location.folder;
  };
  /** Opens a sandbox whose folder holds the files of the store. */
  const openRestored = async (
    context: SandboxOwner,
    createArchive: (folder: string) => Archive,
  ): Promise<Sandbox> => {
    // `inner` creates the folder, and refuses one that is a link.
    let sandbox = await inner.open(context);
    try {
      const folder = folderOf(context);
      const archive = createArchive(folder);
      const isStored = await archive.restore();
      if (isStored || (open.get(folder) === undefined && (await isMarked(folder)))) {
        await sandbox.close();
        if (!isStored) {
          // Another machine deleted the session: a new session of that name must not find its files.
          await inner.remove?.(context);
          await rm(markOf(folder), { force: true });
        }
        sandbox = await inner.open(context);
      }
      // A new workspace can start with files. A workspace that is too large still opens, so that files can be removed.
      await archive.saveFirst();
      open.set(folder, (open.get(folder) ?? 0) + 1);
      const close = closeOnce(sandbox, () => {
        const openCount = (open.get(folder) ?? 1) - 1;
        if (openCount > 0) open.set(folder, openCount);
        else open.delete(folder);
      });
      return withSaving(sandbox, archive, close);
    } catch (error) {
      await sandbox.close();
      throw error;
    }
  };
  return {
    ...inner,
    open: async (context) =>
      await openRestored(context, (folder) => new Archive(folder, keyOf(context), options)),
    // Another machine may have changed the workspace, so the folder is valid only while its sandbox is open.
    locate(owner) {
      const location = inner.locate?.(owner);
      return location !== undefined && open.has(location.folder) ? location : undefined;
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

/** The marker file next to a folder whose files are those of the store, or were changed by a call. */
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

/** A sandbox whose writing calls resolve once their changes are saved. */
function withSaving(inner: Sandbox, archive: Archive, close: () => Promise<void>): Sandbox {
  const savingAfter =
    <Arguments extends unknown[], Result>(call: (...args: Arguments) => Promise<Result>) =>
    async (...args: Arguments): Promise<Result> => {
      await archive.begin();
      try {
        return await call.apply(inner, args);
      } finally {
        await archive.end();
      }
    };
  return new Proxy(inner, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (name === "at") return (cwd: string) => withSaving(target.at(cwd), archive, close);
      if (name === "close") return close;
      if (typeof value !== "function") return value;
      if (writingCalls.has(String(name)))
        return savingAfter(value as (...args: unknown[]) => Promise<unknown>);
      return value.bind(target) as unknown;
    },
  });
}

const writingCalls = new Set(["writeFile", "writeBytes", "mkdir", "rm", "edit", "exec", "upload"]);

/** The workspace of one session in the store, and on this machine. */
class Archive {
  readonly #root: string;
  readonly #key: SessionKey;
  readonly #options: PersistOptions;
  readonly #fence: number | undefined;
  readonly #knownFiles: KnownFiles = new Map();
  #version = 0;
  #manifest = "";
  #stored = new Set<string>();
  /** A manifest whose commit got no answer; the store may have accepted it. */
  #unanswered: string | undefined;
  /** Whether another writer has changed the workspace in the store. */
  #isBehind = false;
  #isMarked = false;
  /** Whether the store has the files with which the workspace was opened, if there were any. */
  #isSaved = false;
  #renewing: Promise<void> | undefined;
  #saving: Promise<void> = Promise.resolve();
  /** A save that has not started; callers that ask for one meanwhile share it. */
  #next: Promise<void> | undefined;

  constructor(root: string, key: SessionKey, options: PersistOptions) {
    this.#root = root;
    this.#key = key;
    this.#options = options;
    // Under a later lease of this machine, changes that this opener left half done must not be saved.
    this.#fence = options.fenceOf?.(key);
  }

  /** Makes the folder match the store. Returns false, and leaves the folder as it is, if the store has nothing. */
  async restore(): Promise<boolean> {
    const { store } = this.#options;
    const stored = await store.read(this.#key);
    if (stored === undefined) return false;
    const entries = parseManifest(stored.manifest);
    await restoreWorkspace(this.#root, entries, {
      known: this.#knownFiles,
      read: (name) => store.readPiece(this.#key, name),
    });
    this.#adopt(stored);
    await this.#mark();
    return true;
  }

  /** Saves the files with which a workspace is opened. One that is too large still opens, so that files can be removed. */
  async saveFirst(): Promise<void> {
    try {
      await this.save();
      this.#isSaved = true;
    } catch (error) {
      if (!isTooLarge(error)) throw error;
    }
  }

  /** Before a call: restores the folder if another writer has changed the workspace, and marks it, because the call may be interrupted. */
  async begin(): Promise<void> {
    await this.#renew();
    if (this.#isSaved) await this.#mark();
  }

  /** After a call: saves its changes. If they are too large for a first version, the files stay, so that some can be removed. */
  async end(): Promise<void> {
    try {
      await this.save();
    } catch (error) {
      if (isTooLarge(error) && this.#version === 0) {
        await rm(markOf(this.#root), { force: true });
        this.#isMarked = false;
      }
      throw error;
    }
  }

  async #renew(): Promise<void> {
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

  /** Resolves once every change made before this call is saved. */
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
    for (let scan = 1; ; scan += 1) {
      const entries = await scanWorkspace(this.#root, this.#knownFiles, this.#options.maxBytes);
      const manifest = JSON.stringify({ entries });
      const isEmpty = entries.length === 0 && this.#version === 0;
      if ((manifest === this.#manifest || isEmpty) && this.#unanswered === undefined) return;
      if ((await this.#storePieces(entries)) && (await this.#commit(entries, manifest))) {
        await this.#mark();
        return;
      }
      if (scan === maxScans) throw keepsChanging();
    }
  }

  /** Returns false if the store already has an earlier commit of this writer whose answer was lost. */
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
      const stored = await store.read(this.#key);
      this.#unanswered = undefined;
      const isOwn = stored?.version === this.#version + 1 && [manifest, earlier].includes(stored.manifest);
      this.#isBehind = !isOwn;
      if (!isOwn) throw changedElsewhere(error);
      this.#adopt(stored);
      return stored.manifest === manifest;
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

  /**
   * An unmarked folder is older than the store's records, so it stays although the store has no workspace. A marked one does not: it
   * has the files of a deleted session, or what a first call left half done.
   */
  async #mark(): Promise<void> {
    if (this.#isMarked) return;
    await writeFile(markOf(this.#root), JSON.stringify(this.#key), { flag: "wx", mode: 0o600 }).catch(
      (error: unknown) => {
        if (!hasCode(error, "EEXIST")) throw error;
      },
    );
    this.#isMarked = true;
  }

  /** Writes the pieces that the store lacks. Returns false if a file changed since the scan. */
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

function isTooLarge(error: unknown): boolean {
  return error instanceof KitError && error.code === "payload_too_large";
}

function piecesOf(entry: ManifestEntry): readonly string[] {
  return entry.kind === "file" ? entry.pieces : [];
}

function keepsChanging(): KitError {
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
    message:
      "Another writer has changed the files of this session, so the changes of this call are not saved.",
    hint: "The next call sees the current files. Make the missing changes again.",
    cause,
  });
}

function noOwnWorkspace(name: string): KitError {
  return new KitError({
    code: "invalid_request",
    message: `sandbox.persist cannot be used with the sandbox "${name}": its sessions have no workspace of their own on this machine.`,
    hint: 'Set agent.sandbox to "virtual", or turn sandbox.persist off.',
  });
}
