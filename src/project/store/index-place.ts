import { accessSync, constants, lstatSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { isLinkOut } from "../../files/find-place.ts";
import { openObstacle, systemObstacle, writeObstacle } from "../../files/obstacle.ts";
import { sqliteFault } from "../../sqlite/database-file.ts";
import type { Database } from "../../sqlite/statements.ts";

/** The name of an index in memory. */
export const inMemory = ":memory:";

/** An index as tables of a database, beside those of other stores. */
export interface SharedIndex {
  open(): Database;
  /** Says which files the index is of: another one is another index. */
  readonly version: string;
}

/**
 * The place of an index. An index that must not or cannot be kept lies in a temporary folder of its own, and in memory where the
 * temporary folder cannot be written either: a reader gets its answer in any case.
 */
export class IndexPlace {
  #file: string;
  #problem: string | undefined;
  /** The temporary folder; `remove` deletes it. */
  #folder: string | undefined;

  /** Undefined where the index is a file. */
  readonly shared: SharedIndex | undefined;

  /** `indexFile` as in `OpenProjectOptions`. */
  constructor(root: string, index?: string | SharedIndex) {
    const indexFile = typeof index === "object" ? inMemory : index;
    this.shared = typeof index === "object" ? index : undefined;
    const kept = join(root, ".kit", "index.db");
    this.#file = indexFile === undefined || indexFile === inMemory ? kept : resolve(indexFile);
    if (this.shared !== undefined) this.#file = inMemory;
    else if (indexFile === inMemory) this.#moveAway();
    if (indexFile !== undefined) return;
    this.#problem = reasonNotPersistent(root);
    if (this.#problem !== undefined) this.#moveAway();
  }

  get file(): string {
    return this.#file;
  }

  /** Why the index is not kept in the project; undefined where it is. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Moves to the next place after an error that says that this one cannot be written; false for any other error. */
  leave(error: unknown): boolean {
    const reason = obstacleIn(error);
    if (reason === undefined) return false;
    const shortage = openObstacle();
    if (shortage !== undefined || this.#file === inMemory) throw cannotIndex(shortage ?? reason, error);
    this.#problem ??= writeObstacle(dirname(this.#file)) ?? reason;
    this.#moveAway();
    return true;
  }

  remove(): void {
    if (this.#folder !== undefined) rmSync(this.#folder, { recursive: true, force: true });
    this.#folder = undefined;
  }

  #moveAway(): void {
    try {
      if (this.#folder !== undefined) this.#file = inMemory;
      else {
        this.#folder = mkdtempSync(join(tmpdir(), "kit-index-"));
        this.#file = join(this.#folder, "index.db");
      }
    } catch {
      this.#file = inMemory;
    }
  }
}

/** The obstacle that an error names about the place; undefined for an error about its content. */
function obstacleIn(error: unknown): string | undefined {
  const fault = sqliteFault(error);
  if (fault === undefined) return systemObstacle(error);
  return fault.isDamage || fault.isBusy ? undefined : fault.reason;
}

function reasonNotPersistent(root: string): string | undefined {
  const folder = join(root, ".kit");
  const obstacle = writeObstacle(folder);
  if (obstacle !== undefined) return obstacle;
  const stats = lstatSync(folder, { throwIfNoEntry: false });
  if (stats === undefined) return undefined;
  if (!stats.isDirectory()) return "it is not a folder";
  try {
    accessSync(folder, constants.R_OK);
    const isLink = (name: string): boolean => isLinkOut(root, `.kit/${name}`);
    return readdirSync(folder).some(isLink) ? "a link in it leads out of the project" : undefined;
  } catch (error) {
    return systemObstacle(error) ?? "it cannot be read";
  }
}

function cannotIndex(reason: string, cause: unknown): KitError<"unavailable"> {
  return new KitError({
    code: "unavailable",
    message: `kit cannot read this project: ${reason}.`,
    hint: "The content of .kit is intact: leave it where it is.",
    cause,
  });
}
