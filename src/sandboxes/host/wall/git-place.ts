import { closeSync, constants, mkdirSync, openSync, readlinkSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { heldPath } from "../../../files/walk.ts";
import { exists, withHeld } from "./held-files.ts";

/** How many commands need the folder that kit made in each root. */
const users = new Map<string, number>();

/**
 * Makes an empty `.git` in a root that has none: the wall mounts it read-only, and a command makes no repository in its place, which the
 * person's Git would find while the command runs. The returned function removes the folder after the last command; a
 * further call tries again.
 */
export function holdGitPlace(root: string): () => void {
  const isMade =
    users.has(root) ||
    withHeld(root, (held) => {
      const place = join(held, ".git");
      if (readlinkSync(held) !== root || exists(place)) return false;
      try {
        mkdirSync(place);
        return true;
      } catch {
        // Commands of this user cannot make it either, or another process just did.
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
    if (readlinkSync(held) === root) rmdirSync(join(held, ".git"));
  } catch {
    // The person made a repository meanwhile, or it is removed already.
  } finally {
    closeSync(descriptor);
  }
}

/** O_PATH, which Node does not name: a command may have taken the right to read the root. */
const onlyPath = 0o10000000;
