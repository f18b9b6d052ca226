import type { GuidelineRecord } from "../../guidelines/guideline-record.ts";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { SpecBlock } from "../../protocol/spec-block.ts";
import { toId, toSpecBlock } from "../../specs/model/assemble-blocks.ts";
import { type FileRefs, resolveMentions } from "../../specs/model/mentions.ts";
import type { Connection } from "../../sqlite/statements.ts";
import type { StoredDiagnostics } from "../scan/source-catalog.ts";
import { type Aliases, parentOf } from "../scan/tree.ts";
import {
  aliasRef,
  type BlockClass,
  type BlockEdges,
  classIdOf,
  type EdgeColumns,
  type IdKind,
  keysOfId,
  readClasses,
  type StoredBlock,
  type TextColumns,
  toEdges,
  toStoredBlock,
} from "./block-row.ts";
import { DamagedIndexError, parseStored } from "./open-index.ts";

/** Facts about the project around the blocks. */
export interface ProjectFacts {
  hasFile(path: string): boolean;
  aliases(): Pick<Aliases, "realOf">;
  /** First and last commit of a file, in seconds since 1970, and the name of its first author. */
  datesOf(
    path: string,
  ): { readonly first?: number | undefined; readonly last: number; readonly author?: string } | undefined;
}

/** A block with its place and its links, without its text. */
export interface PlacedBlock extends BlockEdges {
  readonly key: number;
  readonly id: string;
  /** The id that the adapter asked for. */
  readonly base: string;
  readonly path: string;
}

/** Reads the place and links of a block; throws a `DamagedIndexError` where the index contradicts itself. */
export function readPlacedBlock(database: Connection, key: number): PlacedBlock {
  const row = database.get<[path: string, kind: IdKind, base: string, n: number, ...EdgeColumns]>(
    `SELECT f.path, b.id_kind, b.base, b.n, b.feature, b.links, b.mentions, b.aliases
     FROM blocks b JOIN files f ON f.id = b.file WHERE b.key = ?`,
    key,
  );
  if (row === undefined) throw new DamagedIndexError("A block is missing.");
  const [path, kind, base, n, ...edges] = row;
  return { key, id: toId(kind, base, n), base, path, ...toEdges(edges) };
}

/** Reads the text of a block. */
export function readStoredBlock(
  database: Connection,
  placed: PlacedBlock,
  classes: ReadonlyMap<number, BlockClass> = readClasses(database),
): StoredBlock {
  const row = database.get<[...TextColumns]>(
    `SELECT start_line, end_line, created_at, updated_at, title, summary, tags, metadata, content
     FROM blocks WHERE key = ?`,
    placed.key,
  );
  const found = classes.get(classIdOf(placed.key));
  if (row === undefined || found === undefined) throw new DamagedIndexError("A block is missing.");
  return toStoredBlock(row, found, placed);
}

/** Reads blocks in the order of `keys`, with their present ids and links. */
export function readBlocks(
  database: Connection,
  { keys, facts }: { readonly keys: Iterable<number>; readonly facts: ProjectFacts },
): SpecBlock[] {
  const links = createLinkResolver(database);
  const classes = readClasses(database);
  const blocks: SpecBlock[] = [];
  for (const key of keys) {
    const placed = readPlacedBlock(database, key);
    const block = readStoredBlock(database, placed, classes);
    const { id, path } = placed;
    const folder = parentOf(path);
    const related = new Set<string>();
    for (const link of block.links) {
      for (const target of links.resolve(link.target, folder)) if (target.id !== id) related.add(target.id);
    }
    const refs = realRefs(path, block.mentions, facts);
    const dates = facts.datesOf(path);
    const draft = { ...block, id: { kind: "declared", value: id } as const };
    blocks.push(
      toSpecBlock(draft, {
        id,
        path,
        related_specs: [...related],
        ...refs,
        ...(dates === undefined ? {} : { updated_at: toIsoTime(dates.last) }),
        ...(dates?.first === undefined ? {} : { created_at: toIsoTime(dates.first) }),
        ...(dates?.author === undefined ? {} : { author: dates.author }),
      }),
    );
  }
  return blocks;
}

/** The files that a block names, by their real paths, without the block's own file. */
function realRefs(path: string, mentions: StoredBlock["mentions"], facts: ProjectFacts): FileRefs {
  if (mentions.length === 0) return { code_refs: [], test_refs: [] };
  const { realOf } = facts.aliases();
  const refs = resolveMentions(path, mentions, (name) => facts.hasFile(name) && realOf(name) !== path);
  const real = (names: readonly string[]): string[] => [...new Set(names.map(realOf))];
  return { code_refs: real(refs.code_refs), test_refs: real(refs.test_refs) };
}

function toIsoTime(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace(".000Z", "Z");
}

interface LinkTarget {
  readonly key: number;
  readonly id: string;
  readonly path: string;
}

/** Finds the blocks that links name. It caches answers, so create one per question to the index. */
interface LinkResolver {
  /**
   * The block with a base or declared id, resolved from a folder: the first one in that folder, else the first one in the
   * project. If there is none: the block with this final id, else the blocks that have it as an alias in that folder: one block,
   * or all of them if the alias ends in `*`.
   */
  resolve(target: string, folder: string): readonly LinkTarget[];
}

export function createLinkResolver(database: Connection): LinkResolver {
  const knownTargets = new Map<string, readonly LinkTarget[]>();
  const aliased = new Map<string, readonly LinkTarget[]>();
  const load = (target: string): readonly LinkTarget[] => {
    const rows = database.all<[key: number, kind: IdKind, n: number, path: string]>(
      `SELECT b.key, b.id_kind, b.n, f.path FROM blocks b JOIN files f ON f.id = b.file
       WHERE b.base = ? AND b.id_kind <> 'sequence' ORDER BY f.path, b.position`,
      target,
    );
    if (rows.length > 0) {
      return rows.map(([key, kind, n, path]) => ({ key, id: toId(kind, target, n), path }));
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
      const targets = remember(knownTargets, target, load);
      const nearest = targets.find(({ path }) => parentOf(path) === folder) ?? targets[0];
      if (nearest !== undefined) return [nearest];
      const same = remember(aliased, target, loadAliased).filter(({ path }) => parentOf(path) === folder);
      return same.length === 1 || target.endsWith("*") ? same : [];
    },
  };
}

function remember<T>(cache: Map<string, T>, name: string, load: (name: string) => T): T {
  const value = cache.get(name) ?? load(name);
  cache.set(name, value);
  return value;
}

/** Caches the guidelines of an index in memory. After a change it reads only the files that differ. */
interface GuidelineStore {
  /** In path, then position order. */
  load(database: Connection): readonly GuidelineRecord[];
  diagnostics(database: Connection): readonly Diagnostic[];
}

interface CachedFile {
  readonly hash: string;
  readonly records: readonly GuidelineRecord[];
}

export function createGuidelineStore(): GuidelineStore {
  let cachedFiles = new Map<string, CachedFile>();
  let loaded: readonly GuidelineRecord[] = [];
  return {
    load(database) {
      const rows = database.all<[path: string, hash: string]>(
        // The guidelines of a file depend on its other names, too.
        "SELECT path, hash || aliases FROM files WHERE guideline_count > 0",
      );
      const now = new Map<string, CachedFile>();
      let isSame = rows.length === cachedFiles.size;
      for (const [path, hash] of rows) {
        const before = cachedFiles.get(path);
        const file = before?.hash === hash ? before : { hash, records: readRecords(database, path) };
        isSame &&= file === before;
        now.set(path, file);
      }
      if (isSame) return loaded;
      cachedFiles = now;
      // The order of `compareRecords`, which for other than ASCII names is not that of SQLite.
      loaded = [...now.keys()].sort().flatMap((path) => now.get(path)?.records ?? []);
      return loaded;
    },
    diagnostics(database) {
      return database
        .all<[string]>("SELECT diagnostics FROM files WHERE diagnostics <> ''")
        .flatMap(([diagnostics]) => parseStored<StoredDiagnostics>(diagnostics).guidelines ?? []);
    },
  };
}

function readRecords(database: Connection, path: string): readonly GuidelineRecord[] {
  const [guidelines] = database.get<[string]>("SELECT guidelines FROM files WHERE path = ?", path) ?? [];
  return guidelines === undefined ? [] : parseStored<readonly GuidelineRecord[]>(guidelines);
}
