import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { SpecEdgeKind } from "../../protocol/spec-query.ts";
import {
  openspecChangeProblems,
  openspecDocumentOf,
  openspecFolderProblem,
  proposedFolder,
} from "../../specs/adapters/openspec/openspec-document.ts";
import { duplicateId, toId } from "../../specs/model/assemble-blocks.ts";
import { isTestPath, mentionCandidates } from "../../specs/model/mentions.ts";
import type { Connection } from "../../sqlite/statements.ts";
import type { StoredDiagnostic, StoredDiagnostics } from "../scan/source-catalog.ts";
import { type Aliases, namesIn, parentOf } from "../scan/tree.ts";
import {
  createLinkResolver,
  type PlacedBlock,
  readPlacedBlock,
  readStoredBlock,
} from "../store/block-reader.ts";
import { blockRef, type IdKind, mentionRefsOf, writtenPathOf } from "../store/block-row.ts";
import { parseStored } from "../store/open-index.ts";

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
  /** The blocks of a file, and the blocks that name it; the file can be deleted. */
  fromFile(path: string): BlockEdge[];
  /** Blocks that a block links to, or that link to it. */
  fromBlock(from: PlacedBlock): BlockEdge[];
  /** Blocks of the other documents of the same feature, at most `limit`, in path, then position order. */
  ofFeature(from: PlacedBlock, limit: number): BlockEdge[];
  /** Files of the project that a block names. */
  filesOf(from: PlacedBlock): FileEdge[];
  /** Blocks that a block links to. */
  linksOf(from: PlacedBlock): BlockEdge[];
  /** Blocks that link to a block. */
  linksTo(to: PlacedBlock): BlockEdge[];
}

/** The files that blocks can name. */
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
    const refs = database.all<[string, number]>(
      "SELECT target, key FROM refs WHERE target >= ? AND target < ?",
      ...[from, to],
    );
    return refs.flatMap(([target, key]) => {
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
    linksTo,
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

/** The problems of the spec files of an index, in path, then line order; of one file, if `path` names it. */
export function specDiagnostics(database: Connection, path?: string): Diagnostic[] {
  return [
    ...fileDiagnostics(database, path),
    ...duplicates(database, path),
    ...danglingReferences(database, path),
    ...changeProblems(database, path),
  ]
    .filter((diagnostic) => path === undefined || diagnostic.path === path)
    .sort((a, b) => compare(a.path, b.path) || (a.line ?? 0) - (b.line ?? 0));
}

/** The rows of blocks of one file. */
const ofFile = "file = (SELECT id FROM files WHERE path = ?)";

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Problems of reading, parsing and validating each file. */
function fileDiagnostics(database: Connection, path?: string): Diagnostic[] {
  const rows = database.all<[file: number, diagnostics: string]>(
    `SELECT id, diagnostics FROM files WHERE diagnostics <> '' ${path === undefined ? "" : "AND path = ?"}`,
    ...(path === undefined ? [] : [path]),
  );
  return rows.flatMap(([file, diagnostics]) => {
    const { specs = [] } = parseStored<StoredDiagnostics>(diagnostics);
    return specs.map((diagnostic) => withId(database, file, diagnostic));
  });
}

function withId(database: Connection, file: number, stored: StoredDiagnostic): Diagnostic {
  const { position, ...diagnostic } = stored;
  if (position === undefined) return diagnostic;
  const row = database.get<[kind: IdKind, base: string, n: number]>(
    "SELECT id_kind, base, n FROM blocks WHERE file = ? AND position = ?",
    ...[file, position],
  );
  return row === undefined ? diagnostic : { ...diagnostic, id: toId(...row) };
}

/** Ids that more than one block declares. */
function duplicates(database: Connection, path?: string): Diagnostic[] {
  const bases = database.all<[string]>(
    path === undefined
      ? `SELECT base FROM blocks INDEXED BY blocks_by_base WHERE id_kind = 'declared'
         GROUP BY base HAVING count(*) > 1`
      : `SELECT DISTINCT base FROM blocks WHERE id_kind = 'declared' AND ${ofFile}`,
    ...(path === undefined ? [] : [path]),
  );
  return bases.flatMap(([base]) => {
    const keys = database.all<[number]>(
      `SELECT b.key FROM blocks b JOIN files f ON f.id = b.file
       WHERE b.base = ? AND b.id_kind = 'declared' ORDER BY f.path, b.position`,
      base,
    );
    const locations = keys.map(([key]) => {
      const placed = readPlacedBlock(database, key);
      return { path: placed.path, line: readStoredBlock(database, placed).span.start_line };
    });
    const [first, ...repeated] = locations;
    return first === undefined ? [] : repeated.map((location) => duplicateId(base, location, first));
  });
}

/** Contradictions between open OpenSpec changes and the specs that they change; for a file, those below the same folder `openspec`. */
function changeProblems(database: Connection, path?: string): Diagnostic[] {
  const [folder] = path === undefined ? [""] : (/^.*?openspec\//s.exec(path) ?? []);
  if (folder === undefined) return [];
  const keys = database.all<[number]>(
    `SELECT b.key FROM files f JOIN blocks b ON b.file = f.id
     WHERE f.path >= ?1 AND substr(f.path, 1, length(?1)) = ?1
     AND instr(f.path, 'openspec/') > 0 AND instr(f.path, '/archive/') = 0 ORDER BY f.path, b.position`,
    folder,
  );
  const ids = new Map<string, string>();
  const blocks = keys.map(([key]) => {
    const placed = readPlacedBlock(database, key);
    const { content, metadata, span } = readStoredBlock(database, placed);
    ids.set(`${placed.path} ${span.start_line}`, placed.id);
    return { path: placed.path, line: span.start_line, content, metadata };
  });
  const contradictions = openspecChangeProblems(blocks).map((problem) => {
    const id = ids.get(`${problem.path} ${problem.line}`);
    return id === undefined ? problem : { ...problem, id };
  });
  const folders = database.all<[path: string, files: string, sources: string]>(
    `SELECT path, files, sources FROM folders WHERE instr(path, '${proposedFolder}') > 0`,
  );
  const unknown = folders.flatMap(
    ([path, files, sources]) =>
      openspecFolderProblem(path, [...namesIn(sources), ...namesIn(files)].sort()) ?? [],
  );
  return [...contradictions, ...unknown];
}

/** Links to blocks that the project does not have. */
function danglingReferences(database: Connection, path?: string): Diagnostic[] {
  const candidates =
    path === undefined
      ? database.all<[key: number]>(
          `SELECT r.key FROM refs r WHERE r.target >= 'b' AND r.target < 'c'
           AND NOT EXISTS (SELECT 1 FROM blocks b WHERE b.base = substr(r.target, 2) AND b.id_kind <> 'sequence')`,
        )
      : database.all<[key: number]>(`SELECT key FROM blocks WHERE ${ofFile}`, path);
  const links = createLinkResolver(database);
  const keys = new Set(candidates.map(([key]) => key));
  return [...keys].flatMap((key) => {
    const { id, path: from, links: written } = readPlacedBlock(database, key);
    // `changeProblems` reports changes of a missing requirement.
    if (openspecDocumentOf(from)?.kind === "delta") return [];
    const distinct = new Map(written.map((link) => [`${link.line} ${link.target}`, link]));
    return [...distinct.values()]
      .filter(({ target }) => links.resolve(target, parentOf(from)).length === 0)
      .map(
        ({ target, line }): Diagnostic => ({
          severity: "warning",
          rule: "dangling-reference",
          message: danglingMessage(target),
          path: from,
          line,
          id,
        }),
      );
  });
}

/** The author wrote "NFR-1", not the id that kit made from it. */
export function danglingMessage(target: string): string {
  const code = /-requirements-(.+-\d+(?:\.\d+)*)$/.exec(target)?.[1];
  if (code === undefined || code.startsWith("req")) return `No block of this project has the id "${target}".`;
  return `${code.toUpperCase()} does not name exactly one statement of this feature's requirements: no statement or several statements have this code.`;
}
