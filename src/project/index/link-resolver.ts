import { parentOf } from "../tree/folder.ts";
import { keysOfId, toBlockId } from "./block-id.ts";
import type { IndexDatabase } from "./index-database.ts";

export interface LinkTarget {
  readonly key: number;
  readonly id: string;
  readonly path: string;
}

/** Finds the blocks that links name. Answers are kept, so make one per question to the index. */
export interface LinkResolver {
  /**
   * The block with a base or declared id, as seen from a folder: the first one of that folder, else
   * the first one of the project. Without one, the block that has the id as it was given out.
   */
  resolve(target: string, folder: string): LinkTarget | undefined;
}

export function createLinkResolver(database: IndexDatabase): LinkResolver {
  const known = new Map<string, readonly LinkTarget[]>();
  const load = (target: string): readonly LinkTarget[] => {
    const found = database.all<[key: number, kind: number, n: number, path: string]>(
      `SELECT b.key, b.kind, b.n, f.path FROM blocks b JOIN files f ON f.id = b.file
       WHERE b.base = ? AND b.kind <> 1 ORDER BY f.path, b.position`,
      target,
    );
    if (found.length > 0) {
      return found.map(([key, kind, n, path]) => ({ key, id: toBlockId(kind, target, n), path }));
    }
    return keysOfId(database, target).map((key) => {
      const [path] =
        database.get<[string]>(
          "SELECT f.path FROM blocks b JOIN files f ON f.id = b.file WHERE b.key = ?",
          key,
        ) ?? [];
      return { key, id: target, path: path ?? "" };
    });
  };
  return {
    resolve(target, folder) {
      let targets = known.get(target);
      if (targets === undefined) {
        targets = load(target);
        known.set(target, targets);
      }
      return targets.find(({ path }) => parentOf(path) === folder) ?? targets[0];
    },
  };
}
