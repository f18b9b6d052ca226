import { toId } from "../../specs/model/assign-ids.ts";
import type { Connection } from "../../sqlite/connection.ts";
import { parentOf } from "../scan/folder.ts";
import { type IdKind, keysOfId } from "./block-id.ts";
import { aliasRef } from "./refs.ts";

export interface LinkTarget {
  readonly key: number;
  readonly id: string;
  readonly path: string;
}

/** Finds the blocks that links name. Answers are kept, so make one per question to the index. */
export interface LinkResolver {
  /**
   * The block with a base or declared id, as seen from a folder: the first one of that folder, else
   * the first one of the project. Without one, the block that has the id as it was given out, else
   * what has it for an alias in that folder: one block, or each where the alias ends in `*`.
   */
  resolve(target: string, folder: string): readonly LinkTarget[];
}

export function createLinkResolver(database: Connection): LinkResolver {
  const known = new Map<string, readonly LinkTarget[]>();
  const aliased = new Map<string, readonly LinkTarget[]>();
  const load = (target: string): readonly LinkTarget[] => {
    const found = database.all<[key: number, kind: IdKind, n: number, path: string]>(
      `SELECT b.key, b.id_kind, b.n, f.path FROM blocks b JOIN files f ON f.id = b.file
       WHERE b.base = ? AND b.id_kind <> 'sequence' ORDER BY f.path, b.position`,
      target,
    );
    if (found.length > 0) {
      return found.map(([key, kind, n, path]) => ({ key, id: toId(kind, target, n), path }));
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
  const loadAliased = (alias: string): readonly LinkTarget[] =>
    database
      .all<[key: number, kind: IdKind, base: string, n: number, path: string]>(
        `SELECT b.key, b.id_kind, b.base, b.n, f.path FROM refs r JOIN blocks b ON b.key = r.key
         JOIN files f ON f.id = b.file WHERE r.target = ? ORDER BY f.path, b.position`,
        aliasRef(alias),
      )
      .map(([key, kind, base, n, path]) => ({ key, id: toId(kind, base, n), path }));
  return {
    resolve(target, folder) {
      const targets = remember(known, target, load);
      const one = targets.find(({ path }) => parentOf(path) === folder) ?? targets[0];
      if (one !== undefined) return [one];
      const same = remember(aliased, target, loadAliased).filter(({ path }) => parentOf(path) === folder);
      return same.length === 1 || target.endsWith("*") ? same : [];
    },
  };
}

function remember<T>(known: Map<string, T>, name: string, load: (name: string) => T): T {
  const found = known.get(name) ?? load(name);
  known.set(name, found);
  return found;
}
