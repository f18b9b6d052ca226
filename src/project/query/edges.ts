import type { SpecEdgeKind } from "../../protocol/spec-query.ts";
import { mentionCandidates } from "../../specs/model/resolve-mentions.ts";
import { isTestPath } from "../../specs/model/test-path.ts";
import type { Connection } from "../../sqlite/connection.ts";
import type { Aliases } from "../scan/aliases.ts";
import { parentOf } from "../scan/folder.ts";
import { createLinkResolver, type PlacedBlock, readPlacedBlock } from "../store/block-reader.ts";
import { blockRef, mentionRefsOf, writtenPathOf } from "../store/block-row.ts";

/** A block that an edge leads to. */
export interface BlockEdge {
  readonly to: PlacedBlock;
  readonly kind: SpecEdgeKind;
}

/** A file that a block names. */
export interface FileEdge {
  readonly path: string;
  readonly kind: "code_ref" | "test_ref";
}

/** The edges between blocks and files, looked up one by one. It caches what it reads: create one per question. */
export interface Edges {
  block(key: number): PlacedBlock;
  /** Blocks that lie in a file, or that name it; the file need not exist any more. */
  fromFile(path: string): BlockEdge[];
  /** Blocks that a block links to, or that link to it. */
  fromBlock(from: PlacedBlock): BlockEdge[];
  /** Blocks of the other documents of the same feature, at most `limit`, in path, then position order. */
  ofFeature(from: PlacedBlock, limit: number): BlockEdge[];
  /** Files of the project that a block names. */
  filesOf(from: PlacedBlock): FileEdge[];
  /** Blocks that a block links to. */
  linksOf(from: PlacedBlock): BlockEdge[];
}

/** The files that blocks may name. */
export interface NamedFiles {
  hasFile(path: string): boolean;
  aliases(): Aliases;
}

export function createEdges(database: Connection, { hasFile, aliases }: NamedFiles): Edges {
  const blocks = new Map<number, PlacedBlock>();
  const links = createLinkResolver(database);

  const block = (key: number): PlacedBlock => {
    let found = blocks.get(key);
    if (found === undefined) {
      found = readPlacedBlock(database, key);
      blocks.set(key, found);
    }
    return found;
  };

  /** The file that a mention means, by its real path, when `assumed` is taken to exist. */
  const resolve = (from: PlacedBlock, mention: string, assumed?: string): string | undefined => {
    for (const path of mentionCandidates(from.path, mention)) {
      if (path !== assumed && !hasFile(path)) continue;
      const real = aliases().realOf(path);
      if (real !== from.path) return real;
    }
    return undefined;
  };

  const mentionKind = (path: string, role: "code" | "test" | undefined): FileEdge["kind"] =>
    (role === undefined ? isTestPath(path) : role === "test") ? "test_ref" : "code_ref";

  const linksOf = (from: PlacedBlock): BlockEdge[] =>
    from.links.flatMap(({ target, kind }) =>
      links
        .resolve(target, parentOf(from.path))
        .filter(({ key }) => key !== from.key)
        .map(({ key }) => ({ to: block(key), kind })),
    );

  const linksTo = (to: PlacedBlock): BlockEdge[] => {
    const names = new Set([to.base, to.id, ...to.aliases].map(blockRef));
    return [...names].flatMap((name) =>
      database.all<[number]>("SELECT key FROM refs WHERE target = ?", name).flatMap(([key]) => {
        const from = block(key);
        if (from.key === to.key) return [];
        const link = from.links.find(({ target }) =>
          links.resolve(target, parentOf(from.path)).some((found) => found.key === to.key),
        );
        return link === undefined ? [] : [{ to: from, kind: link.kind }];
      }),
    );
  };

  const mentionsOf = (path: string): BlockEdge[] => {
    const { from, to } = mentionRefsOf(path);
    const found = database.all<[string, number]>(
      "SELECT target, key FROM refs WHERE target >= ? AND target < ?",
      ...[from, to],
    );
    return found.flatMap(([target, key]) => {
      const written = writtenPathOf(target);
      // Most mentions of a common name mean other files; the path alone shows that, before the block is read.
      if (!path.endsWith(written.replace(/^(?:\.{0,2}\/)+/, ""))) return [];
      const mentioning = block(key);
      if (resolve(mentioning, written, path) !== aliases().realOf(path)) return [];
      const mention = mentioning.mentions.find((one) => one.path === written);
      return [{ to: mentioning, kind: mentionKind(path, mention?.role) }];
    });
  };

  return {
    block,
    linksOf,
    fromFile(path) {
      const real = aliases().realOf(path);
      const defined = database.all<[number]>(
        "SELECT key FROM blocks WHERE file = (SELECT id FROM files WHERE path = ?) ORDER BY position",
        real,
      );
      const defines = defined.map(([key]): BlockEdge => ({ to: block(key), kind: "defines" }));
      // A block that names an alias of the file names the file.
      const names = new Set([path, real, ...aliases().namesOf(real)]);
      return [...defines, ...[...names].flatMap(mentionsOf)];
    },
    fromBlock: (from) => [...linksOf(from), ...linksTo(from)],
    ofFeature(from, limit) {
      const { feature } = from;
      if (feature === undefined) return [];
      return database
        .all<[number]>(
          `SELECT b.key FROM features e JOIN files f ON f.id = e.file JOIN blocks b ON b.file = f.id
           WHERE e.feature = ? AND f.path <> ? ORDER BY f.path, b.position LIMIT ?`,
          ...[feature, from.path, limit],
        )
        .map(([key]) => ({ to: block(key), kind: "same_feature" }));
    },
    filesOf(from) {
      const files = new Map<string, FileEdge>();
      for (const { path: written, role } of from.mentions) {
        const path = resolve(from, written);
        if (path !== undefined && !files.has(path)) files.set(path, { path, kind: mentionKind(path, role) });
      }
      return [...files.values()];
    },
  };
}
