import { createHash, randomUUID } from "node:crypto";
import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  createReadStream,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { copyFile, open } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { setImmediate } from "node:timers/promises";
import { createInflate, type Inflate, inflateSync } from "node:zlib";
import { attempt } from "../../../base/attempt.ts";
import { folderFlags, heldPath } from "../../../files/walk.ts";
import { runGit } from "../../../processes/git.ts";
import { exists, identityOf, inFolder, withHeld } from "./held-files.ts";

/**
 * Where a command sees the objects of the repository: next to its own ones, so that relative paths in the repository's `alternates`
 * lead to the same folders.
 */
export const borrowedObjects = "kit-objects";

/**
 * Makes the folder of new objects again, in which Git finds those of the repository as well, unless it still has the stamp.
 * Returns its stamp.
 */
export function renewObjects(copy: string, stamp: string | undefined): string {
  if (stamp !== undefined && stampOf(copy) === stamp) return stamp;
  removeObjects(copy);
  mkdirSync(join(copy, "objects/info"), { recursive: true });
  writeFileSync(join(copy, "objects/info/alternates"), `../${borrowedObjects}\n`);
  return stampOf(copy);
}

export function removeObjects(copy: string, stamp?: string): void {
  if (stamp !== undefined && stampOf(copy) === stamp) return;
  const objects = join(copy, "objects");
  try {
    rmSync(objects, { recursive: true, force: true });
  } catch {
    // A command has taken away the rights to folders.
    giveRights(copy);
    rmSync(objects, { recursive: true, force: true });
  }
}

function giveRights(folder: string): void {
  chmodSync(folder, 0o700);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) giveRights(join(folder, entry.name));
  }
}

/** Changes with every entry that a command adds. */
function stampOf(copy: string): string {
  const watched = ["objects", "objects/info", "objects/info/alternates"];
  return attempt(
    () =>
      watched
        .map((path) => lstatSync(join(copy, path), { bigint: true }))
        .map(({ ino, ctimeNs }) => `${ino}:${ctimeNs}`)
        .join(" "),
    "changed",
  );
}

export interface NewObjects {
  /** A work tree of the repository. */
  readonly root: string;
  /** The Git folder of the repository. */
  readonly folder: string;
  readonly copy: string;
  readonly hashBytes: number;
  /** The stamp of the copy's folder of objects when it had none. */
  readonly stamp: string | undefined;
  /** The objects that kit has taken over already. */
  readonly taken: Set<string>;
}

/** Objects of up to this many bytes are inflated at once. */
const smallBytes = 1024 * 1024;
/** How much may be inflated in addition to the usual multiple of the compressed bytes. */
const spareBytes = 1024 * 1024 * 1024;
const usualRatio = 8;
const packTimeoutMs = 600_000;

/**
 * Takes over the objects that commands have made, each only under the name that its content has. Returns a sentence if it
 * left any, because branches and the index may name it.
 */
export async function takeObjects(objects: NewObjects): Promise<string | undefined> {
  const { copy, folder, stamp, taken } = objects;
  if (stampOf(copy) === stamp) return undefined;
  const { paths, strange } = findObjects(objects);
  const left = [...strange];
  const budget = { bytes: spareBytes };
  for (const [count, path] of paths.entries()) {
    const mark = `${path} ${identityOf(copy, `objects/${path}`)}`;
    if (taken.has(mark)) continue;
    if (count % 100 === 99) await setImmediate();
    const take = path.startsWith("pack/") ? takePack : takeLoose;
    const source = openSource(copy, path);
    let target: number | undefined;
    try {
      target = openObjects(folder);
      const isTaken =
        source !== undefined &&
        target !== undefined &&
        (await take({ ...objects, source, target: heldPath(target), path, budget }));
      if (isTaken) taken.add(mark);
      else left.push(path);
    } catch {
      left.push(path);
    } finally {
      for (const descriptor of [source, target]) if (descriptor !== undefined) closeSync(descriptor);
    }
  }
  if (left.length === 0) return undefined;
  const others = left.length === 1 ? " is" : ` and ${left.length - 1} more are`;
  return `The changes of the repository were not taken over: ${join("objects", left[0] ?? "")}${others} damaged, too large or cannot be written.`;
}

/** New objects and packs, relative to the folder of objects. `strange` are entries in the place of their folders. */
function findObjects({ copy, hashBytes }: NewObjects): {
  readonly paths: readonly string[];
  readonly strange: readonly string[];
} {
  const strange: string[] = [];
  const rest = new RegExp(`^[0-9a-f]{${hashBytes * 2 - 2}}$`);
  const pack = new RegExp(`^pack-[0-9a-f]{${hashBytes * 2}}\\.pack$`);
  const paths = withHeld(join(copy, "objects"), (held) =>
    readdirSync(held).flatMap((folder) => {
      if (folder !== "pack" && !/^[0-9a-f]{2}$/.test(folder)) return [];
      const names = withHeld(join(held, folder), (inner) => readdirSync(inner));
      if (names === undefined) strange.push(folder);
      const form = folder === "pack" ? pack : rest;
      return (names ?? []).filter((name) => form.test(name)).map((name) => `${folder}/${name}`);
    }),
  );
  return { paths: paths ?? [], strange: paths === undefined ? [""] : strange };
}

/** Opens a regular file of the copy; a running command may have put links on the way. */
function openSource(copy: string, path: string): number | undefined {
  return inFolder(copy, `objects/${path}`, (entry) => {
    let descriptor: number | undefined;
    try {
      descriptor = openSync(entry, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      if (fstatSync(descriptor).isFile()) return descriptor;
    } catch {
      return undefined;
    }
    closeSync(descriptor);
    return undefined;
  });
}

const openObjects = (folder: string): number | undefined =>
  withHeld(folder, (held) => openSync(join(held, "objects"), folderFlags));

interface Taking extends NewObjects {
  /** The open file of the copy. */
  readonly source: number;
  /** The open folder of the repository's objects. */
  readonly target: string;
  readonly path: string;
  /** How much may still be inflated. */
  readonly budget: { bytes: number };
}

/** Copies a file to a name that Git removes some time after a crash, calls `work` in its folder, and removes what that leaves. */
async function withTemporary(
  { source, target, path }: Taking,
  work: (folder: number, name: string) => Promise<boolean>,
): Promise<boolean> {
  const { mode } = statSync(target);
  const folder = join(target, dirname(path));
  if (!exists(folder)) {
    mkdirSync(folder);
    chmodSync(folder, mode & 0o7777);
  }
  const descriptor = openSync(folder, folderFlags);
  const name = `tmp_obj_kit_${randomUUID()}`;
  const held = heldPath(descriptor);
  try {
    const [from, to] = [heldPath(source), join(held, name)];
    if (fstatSync(source).size > smallBytes) await copyFile(from, to, constants.COPYFILE_EXCL);
    else copyFileSync(from, to, constants.COPYFILE_EXCL);
    chmodSync(to, mode & 0o444);
    return await work(descriptor, name);
  } finally {
    for (const each of [name, `${name}_idx`].map((left) => join(held, left))) {
      if (exists(each)) unlinkSync(each);
    }
    closeSync(descriptor);
  }
}

/** Git computes the names of the objects in a pack from their contents; nothing reads the command's own index of the pack. */
function takePack(taking: Taking): Promise<boolean> {
  return withTemporary(taking, async (folder, name) => {
    // Git starts in the work tree, and no link on the way leads it elsewhere.
    const file = `/proc/${process.pid}/fd/${folder}/${name}`;
    const args = ["index-pack", "--threads=2", "--no-rev-index", "-o", `${file}_idx`, file] as const;
    const result = await runGit(args, { cwd: taking.root, timeoutMs: packTimeoutMs });
    const [hash] =
      result.status === "ok" ? (/^[0-9a-f]{40,64}(?=\n$)/.exec(result.stdout.toString()) ?? []) : [];
    if (hash === undefined) return false;
    const place = join(heldPath(folder), `pack-${hash}`);
    if (exists(`${place}.idx`)) return true;
    for (const each of [name, `${name}_idx`]) {
      await using handle = await open(join(heldPath(folder), each));
      await handle.sync();
    }
    renameSync(join(heldPath(folder), name), `${place}.pack`);
    renameSync(join(heldPath(folder), `${name}_idx`), `${place}.idx`);
    return true;
  });
}

/** Checks the copy, which commands cannot change. */
function takeLoose(taking: Taking): Promise<boolean> | boolean {
  const { source, target, path, budget } = taking;
  if (exists(join(target, path))) return true;
  budget.bytes += fstatSync(source).size * usualRatio;
  return withTemporary(taking, async (folder, name) => {
    const file = join(heldPath(folder), name);
    if (!(await hasName(file, path.replace("/", ""), budget))) return false;
    renameSync(file, join(heldPath(folder), basename(path)));
    return true;
  });
}

/** Whether Git can read a loose object, and its content has this name. Throws as well if it is no object. */
async function hasName(file: string, name: string, budget: { bytes: number }): Promise<boolean> {
  const hash = createHash(name.length === 40 ? "sha1" : "sha256");
  const { size } = statSync(file);
  let whole: number | undefined;
  let length = 0;
  const add = (chunk: Buffer): void => {
    whole ??= lengthOf(chunk);
    length += chunk.length;
    budget.bytes -= chunk.length;
    if (length > whole || budget.bytes < 0) throw new Error("The object is too large.");
    hash.update(chunk);
  };
  const small = size > smallBytes ? undefined : inflateSmall(readFileSync(file));
  let read = small?.read;
  if (small === undefined) {
    const inflate = createInflate();
    await pipeline(createReadStream(file), inflate, async (chunks: AsyncIterable<Buffer>) => {
      for await (const chunk of chunks) add(chunk);
    });
    read = inflate.bytesWritten;
  } else add(small.content);
  // Git reads no object with anything after it.
  return read === size && length === whole && hash.digest("hex") === name;
}

function inflateSmall(bytes: Buffer): { readonly content: Buffer; readonly read: number } | undefined {
  try {
    // The types of Node leave out what `info` adds.
    const inflated: unknown = inflateSync(bytes, { maxOutputLength: smallBytes, info: true });
    const { buffer, engine } = inflated as { readonly buffer: Buffer; readonly engine: Inflate };
    return { content: buffer, read: engine.bytesWritten };
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** The length that the head of an object promises, with the head. */
function lengthOf(chunk: Buffer): number {
  const head = /^(?:blob|tree|commit|tag) (\d{1,15})\0/.exec(chunk.subarray(0, 32).toString("latin1"));
  return head === null ? 0 : head[0].length + Number(head[1]);
}
