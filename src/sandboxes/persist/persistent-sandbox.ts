import { join } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import type { WorkspaceStore } from "../../protocol/workspace-store.ts";
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
}

/** How often a workspace is read again that changes while it is read. */
const readings = 5;

/**
 * Keeps the workspaces of a sandbox in a store: what a call has changed is kept before the call gives its result, and the next
 * owner of the instance, on whichever machine, begins with it. For sandboxes whose workspaces are folders of the session's own.
 */
export function persistWorkspaces(
  inner: SandboxFactory,
  { store, maxBytes }: PersistOptions,
): SandboxFactory {
  const folderOf = (owner: SandboxOwner): string => {
    const place = inner.locate?.(owner);
    if (place === undefined || place.shared) throw notOwn(inner.name);
    return place.folder;
  };
  return {
    ...inner,
    async open(context) {
      // It makes the folder, and refuses one that leads elsewhere.
      let sandbox = await inner.open(context);
      const archive = new Archive(folderOf(context), keyOf(context), { store, maxBytes });
      if (await archive.restore()) {
        await sandbox.close();
        sandbox = await inner.open(context);
      }
      // A new workspace may begin with files.
      await archive.save();
      return saving(sandbox, archive);
    },
    async remove(owner) {
      await inner.remove?.(owner);
      await store.remove(keyOf(owner));
    },
  };
}

function keyOf({ agent, instance_id, session }: SandboxOwner): SessionKey {
  return { agent, instance_id, session };
}

/** A sandbox whose changing calls resolve once the change is kept. */
function saving(inner: Sandbox, archive: Archive): Sandbox {
  const after =
    <Arguments extends unknown[], Result>(call: (...given: Arguments) => Promise<Result>) =>
    async (...given: Arguments): Promise<Result> => {
      try {
        return await call.apply(inner, given);
      } finally {
        await archive.save();
      }
    };
  return new Proxy(inner, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (name === "at") return (cwd: string) => saving(target.at(cwd), archive);
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
  readonly #known: KnownFiles = new Map();
  #version = 0;
  #manifest = "";
  #stored = new Set<string>();
  #saving: Promise<void> = Promise.resolve();
  /** A save that has not begun; those who ask meanwhile share it. */
  #next: Promise<void> | undefined;

  constructor(root: string, key: SessionKey, options: PersistOptions) {
    this.#root = root;
    this.#key = key;
    this.#options = options;
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
    this.#version = found.version;
    this.#manifest = found.manifest;
    this.#stored = new Set(entries.flatMap(piecesOf));
    return true;
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
    const { store, maxBytes } = this.#options;
    for (let reading = 1; ; reading += 1) {
      const entries = await scanWorkspace(this.#root, this.#known, maxBytes);
      const manifest = JSON.stringify({ entries });
      const isNothing = entries.length === 0 && this.#version === 0;
      if (manifest === this.#manifest || isNothing) return;
      if (!(await this.#storePieces(entries))) {
        if (reading === readings) throw unsteady();
        continue;
      }
      const pieces = new Set(entries.flatMap(piecesOf));
      await store.commit(this.#key, { expected: this.#version, manifest, pieces: [...pieces] });
      this.#version += 1;
      this.#manifest = manifest;
      this.#stored = pieces;
      return;
    }
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
      "The workspace goes on changing while it is read: what was changed last is not kept for other machines.",
    meta: { retry_after_s: 1 },
  });
}

function notOwn(name: string): KitError {
  return new KitError({
    code: "invalid_request",
    message: `sandbox.persist keeps workspaces of sessions, and those of the sandbox "${name}" are none of their own on this machine.`,
    hint: 'It goes with agent.sandbox = "virtual".',
  });
}
