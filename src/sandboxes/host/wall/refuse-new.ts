import {
  chmodSync,
  closeSync,
  constants,
  openSync,
  readlinkSync,
  renameSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { heldPath, holdFolder } from "../../../files/walk.ts";
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
  const isNew = (path: string): boolean => {
    const old = before.get(path);
    return old === undefined || old.link !== after.get(path)?.link;
  };
  const failed: string[] = [];
  for (const [path, { kind, holder }] of after) {
    // Without the link, the path has no protected name.
    if (!isNew(path) || (holder !== undefined && isNew(holder))) continue;
    const name = path === "" ? "the folder of the workspace, as a repository" : path;
    const outcome = refuse(root, path, kind);
    if (outcome !== "missing") (outcome === "renamed" ? refused : failed).push(name);
  }
  for (const [path, { link }] of before) {
    if (link !== undefined && after.get(path)?.link !== link) restore(root, path, link);
  }
  return [
    ...(refused.length === 0
      ? []
      : [
          `Renamed to "${prefix}…", because other programs run what is in them, and this agent must not change such paths (allowProtectedPaths): ${listed(refused)}.`,
        ]),
    ...(failed.length === 0
      ? []
      : [
          `kit could not rename new protected paths; remove them, because other programs run what is in them: ${listed(failed)}.`,
        ]),
  ];
}

function listed(paths: readonly string[]): string {
  const rest = paths.length - maxNamed;
  return [...paths.slice(0, maxNamed), ...(rest > 0 ? [`and ${rest} others`] : [])].join(", ");
}

const prefix = "refused-";
const maxNamed = 50;

type Outcome = "renamed" | "missing" | "failed";

function refuse(root: string, path: string, kind: Guarded["kind"]): Outcome {
  return (
    withFolder(root, path === "" ? [] : foldersOf(path), (held) => {
      // The folder is a repository by its entries: without this one, Git takes it for none.
      if (path === "") return moveAway(held, "HEAD");
      const name = basename(path);
      const inner = kind === "repository" ? holdFolder(held, name) : undefined;
      try {
        const head = inner === undefined ? "missing" : moveAway(inner.path, "HEAD");
        return name.toLowerCase() === ".git" || kind !== "repository" ? moveAway(held, name) : head;
      } finally {
        inner?.close();
      }
    }) ?? "missing"
  );
}

function moveAway(held: string, name: string): Outcome {
  // A command can take away these rights.
  const mode = statSync(held).mode & 0o7777;
  try {
    if ((mode & 0o700) !== 0o700) chmodSync(held, mode | 0o700);
  } catch {
    // Another user's folder: the rights may suffice.
  }
  if (!exists(join(held, name))) return "missing";
  // The prefix must not make the name too long for the file system.
  const kept = Buffer.byteLength(name) > 200 ? "name" : name;
  for (let number = 1; number < 1_000; number += 1) {
    const target = join(held, number === 1 ? `${prefix}${kept}` : `${prefix}${number}-${kept}`);
    if (exists(target)) continue;
    try {
      renameSync(join(held, name), target);
      return "renamed";
    } catch {
      return exists(join(held, name)) ? "failed" : "missing";
    }
  }
  return "failed";
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
