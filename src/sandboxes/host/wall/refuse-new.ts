import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { heldPath, holdFolder } from "../../../files/walk.ts";
import { isAlive } from "../../../processes/is-alive.ts";
import type { Guarded } from "./guarded-paths.ts";
import { exists, lstatOf } from "./held-files.ts";

/**
 * Renames guarded paths that a command made, and puts back links that it changed: other programs would run what is in them, as in
 * `.git`, `.vscode` and `package.json`. Never follows a link. Returns a sentence for the caller of the command.
 */
export function refuseNew(
  root: string,
  before: ReadonlyMap<string, Guarded>,
  after: ReadonlyMap<string, Guarded>,
): readonly string[] {
  const refused: string[] = [];
  for (const [path, { kind, link }] of after) {
    const old = before.get(path);
    if (old !== undefined && old.link === link) continue;
    if (refuse(root, path, kind))
      refused.push(path === "" ? "the folder of the workspace, as a repository" : path);
  }
  for (const [path, { link }] of before) {
    if (link !== undefined && after.get(path)?.link !== link) restore(root, path, link);
  }
  if (refused.length === 0) return [];
  const names =
    refused.length > maxNamed
      ? [...refused.slice(0, maxNamed), `and ${refused.length - maxNamed} others`]
      : refused;
  return [
    `Renamed to "${prefix}…", because other programs run what is in them, and this agent must not change such paths (allowProtectedPaths): ${names.join(", ")}.`,
  ];
}

const prefix = "refused-";
const maxNamed = 50;

function refuse(root: string, path: string, kind: Guarded["kind"]): boolean {
  return (
    withFolder(root, path === "" ? [] : foldersOf(path), (held) => {
      // The folder is a repository by its entries: without this one, Git takes it for none.
      if (path === "") return moveAway(held, "HEAD");
      const name = basename(path);
      const inner = kind === "repository" ? holdFolder(held, name) : undefined;
      try {
        const isHead =
          inner !== undefined && exists(join(inner.path, "HEAD")) && moveAway(inner.path, "HEAD");
        return name.toLowerCase() === ".git" || kind !== "repository" ? moveAway(held, name) : isHead;
      } finally {
        inner?.close();
      }
    }) === true
  );
}

function moveAway(held: string, name: string): boolean {
  for (let number = 1; number < 1_000; number += 1) {
    const target = join(held, number === 1 ? `${prefix}${name}` : `${prefix}${number}-${name}`);
    if (exists(target)) continue;
    try {
      renameSync(join(held, name), target);
      return true;
    } catch {
      // Another process removed or moved it.
      return false;
    }
  }
  return false;
}

function restore(root: string, path: string, link: string): void {
  withFolder(root, foldersOf(path), (held) => {
    if (lstatOf(join(held, basename(path))) === undefined) symlinkSync(link, join(held, basename(path)));
  });
}

const foldersOf = (path: string): readonly string[] => (path.includes("/") ? dirname(path).split("/") : []);

/** Calls `work` with the path of an open folder below the root. */
function withFolder<Value>(
  root: string,
  names: readonly string[],
  work: (held: string) => Value,
): Value | undefined {
  const descriptor = openSync(root, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  const closing: (() => void)[] = [() => closeSync(descriptor)];
  try {
    let held = heldPath(descriptor);
    if (readlinkSync(held) !== root) return undefined;
    for (const name of names) {
      const folder = holdFolder(held, name);
      if (folder === undefined) return undefined;
      closing.push(folder.close);
      held = folder.path;
    }
    return work(held);
  } finally {
    for (const close of closing) close();
  }
}

/** The record by which the next kit cleans up after a command whose kit was killed. */
interface Unfinished {
  readonly root: string;
  readonly before: readonly (readonly [string, Guarded])[];
}

let count = 0;

/** Records what a workspace has before a command; the returned function removes the record. */
export function recordBefore(state: string, root: string, before: ReadonlyMap<string, Guarded>): () => void {
  count += 1;
  const name = `${process.pid}-${count}.json`;
  const unfinished: Unfinished = { root, before: [...before] };
  withRecords(state, (held) =>
    writeFileSync(join(held, name), JSON.stringify(unfinished), { mode: 0o600, flag: "wx" }),
  );
  return () => withRecords(state, (held) => rmSync(join(held, name), { force: true }));
}

/** Calls `work` with the folder of records in kit's folder, if both are no links. */
function withRecords<Value>(state: string, work: (held: string) => Value): Value | undefined {
  const held = lstatOf(state) === undefined ? undefined : holdFolder(state, ".");
  try {
    if (held === undefined) return undefined;
    const path = join(held.path, "running-commands");
    if (!exists(path)) mkdirSync(path, { mode: 0o700 });
    const records = holdFolder(held.path, "running-commands");
    try {
      return records === undefined ? undefined : work(records.path);
    } finally {
      records?.close();
    }
  } finally {
    held?.close();
  }
}

/** Finishes the commands whose kit was killed. */
export function finishKilled(
  state: string,
  root: string,
  {
    find,
    keepsRecords = false,
  }: {
    readonly find: () => ReadonlyMap<string, Guarded>;
    /** Whether a later call, which finds more, goes through the records again. */
    readonly keepsRecords?: boolean;
  },
): readonly string[] {
  const notes = withRecords(state, (held) =>
    readdirSync(held)
      .filter((name) => /^\d+-\d+\.json$/.test(name) && !isAlive(Number.parseInt(name, 10)))
      .flatMap((name) => {
        const unfinished = parse(join(held, name));
        if (unfinished !== undefined && unfinished.root !== root) return [];
        const refused = unfinished === undefined ? [] : refuseNew(root, new Map(unfinished.before), find());
        if (!keepsRecords) rmSync(join(held, name), { force: true });
        return refused;
      }),
  );
  return notes ?? [];
}

function parse(file: string): Unfinished | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    // The machine stopped while the record was written, and no command had started.
    return undefined;
  }
}
