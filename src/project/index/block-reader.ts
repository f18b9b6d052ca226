import type { SpecBlock } from "../../protocol/spec-block.ts";
import { type FileRefs, resolveMentions } from "../../specs/resolve-mentions.ts";
import { toSpecBlock } from "../../specs/to-spec-block.ts";
import type { Aliases } from "../aliases.ts";
import { parentOf } from "../tree/folder.ts";
import { toBlockId } from "./block-id.ts";
import { DamagedIndexError } from "./damaged-index-error.ts";
import type { IndexDatabase } from "./index-database.ts";
import { createLinkResolver } from "./link-resolver.ts";
import { type BlockEdges, type StoredBlock, unpackBlock, unpackEdges } from "./stored-block.ts";

/** What the index does not know of a file by itself. */
export interface ProjectFacts {
  hasFile(path: string): boolean;
  aliases(): Pick<Aliases, "realOf">;
  /** First and last commit of a file, in seconds since 1970, and the name of its first author. */
  datesOf(
    path: string,
  ): { readonly first?: number; readonly last: number; readonly author?: string } | undefined;
}

/** A block with its place and all that leads from it, but not what it says. */
export interface PlacedBlock extends BlockEdges {
  readonly key: number;
  readonly id: string;
  /** What the adapter asked for as its id. */
  readonly base: string;
  readonly path: string;
}

/** Reads where a block lies; throws a `DamagedIndexError` when the index does not hold what it names. */
export function readPlacedBlock(database: IndexDatabase, key: number): PlacedBlock {
  const row = database.get<
    [kind: number, base: string, n: number, edges: string, checksum: number, path: string]
  >(
    `SELECT b.kind, b.base, b.n, b.edges, b.edges_checksum, f.path
     FROM blocks b JOIN files f ON f.id = b.file WHERE b.key = ?`,
    key,
  );
  if (row === undefined) throw new DamagedIndexError("A block is missing.");
  const [kind, base, n, edges, checksum, path] = row;
  return { key, id: toBlockId(kind, base, n), base, path, ...unpackEdges(edges, checksum) };
}

/** Reads what a block says. */
export function readStoredBlock(database: IndexDatabase, placed: PlacedBlock): StoredBlock {
  const row = database.get<[title: string, content: string, data: string, checksum: number]>(
    "SELECT title, content, data, checksum FROM blocks WHERE key = ?",
    placed.key,
  );
  if (row === undefined) throw new DamagedIndexError("A block is missing.");
  const [title, content, data, checksum] = row;
  const { feature, links, mentions } = placed;
  const edges = feature === undefined ? { links, mentions } : { feature, links, mentions };
  return unpackBlock({ title, content, data }, { key: placed.key, checksum, edges });
}

/** Reads blocks by key, in the order given, as the project around them makes them now. */
export function readBlocks(
  database: IndexDatabase,
  { keys, facts }: { readonly keys: Iterable<number>; readonly facts: ProjectFacts },
): SpecBlock[] {
  const links = createLinkResolver(database);
  const blocks: SpecBlock[] = [];
  for (const key of keys) {
    const placed = readPlacedBlock(database, key);
    const block = readStoredBlock(database, placed);
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

/** The files that a block names, by their real paths; an alias of its own file is none. */
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
