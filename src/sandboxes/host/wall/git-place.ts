import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { attempt } from "../../../base/attempt.ts";
import { heldPath } from "../../../files/walk.ts";
import { isAlive, startOf } from "../../../processes/is-alive.ts";
import { exists, withHeld } from "./held-files.ts";

/** How many commands need the folder that kit made in each root. */
const users = new Map<string, number>();

/** A file in the folder for each process that needs it: the last one removes the folder. */
const marks = /^kit-(\d+)-(\d+)$/;
const ownMark = (): string => `kit-${process.pid}-${startOf(process.pid)}`;

/** Whether a `.git` is such a folder, with or without the files of processes. */
export function isGitPlace(folder: string): boolean {
  return attempt(() => readdirSync(folder).every((name) => marks.test(name)), false);
}

/**
 * Makes a `.git` in a root that has none: the wall mounts it read-only, and a command makes no repository in its place, which the
 * person's Git would find while the command runs. The returned function removes the folder after the last command of all
 * processes; a further call tries again.
 */
export function holdGitPlace(root: string): () => void {
  const isMade =
    users.has(root) ||
    withHeld(root, (held) => {
      const place = join(held, ".git");
      if (readlinkSync(held) !== root) return false;
      try {
        if (!exists(place)) mkdirSync(place);
        else if (!isGitPlace(place) || readdirSync(place).length === 0) return false;
        return withHeld(place, (inner) => writeFileSync(join(inner, ownMark()), "") ?? true) === true;
      } catch {
        // Commands of this user cannot make it either, or another process just made or removed it.
        return false;
      }
    }) === true;
  if (!isMade) return () => undefined;
  users.set(root, (users.get(root) ?? 0) + 1);
  let isHeld = true;
  return () => {
    const left = (users.get(root) ?? 0) - (isHeld ? 1 : 0);
    isHeld = false;
    if (left > 0) users.set(root, left);
    else {
      users.delete(root);
      removePlace(root);
    }
  };
}

function removePlace(root: string): void {
  let descriptor: number;
  try {
    descriptor = openSync(root, onlyPath | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  } catch {
    return;
  }
  try {
    const held = heldPath(descriptor);
    if (readlinkSync(held) !== root) return;
    withHeld(join(held, ".git"), (inner) => {
      for (const name of readdirSync(inner)) {
        const [, pid, start] = marks.exec(name) ?? [];
        const isUsed = isAlive(Number(pid)) && startOf(Number(pid)) === start;
        if (name === ownMark() || (pid !== undefined && !isUsed)) rmSync(join(inner, name));
      }
    });
    rmdirSync(join(held, ".git"));
  } catch {
    // Another process needs it, the person made a repository meanwhile, or it is removed already.
  } finally {
    closeSync(descriptor);
  }
}

/** O_PATH, which Node does not name: a command may have taken the right to read the root. */
const onlyPath = 0o10000000;
