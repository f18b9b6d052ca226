import type { Diagnostic } from "../../protocol/diagnostic.ts";
import { openspecChangeProblems } from "../../specs/adapters/openspec/change-problems.ts";
import { openspecDocumentOf } from "../../specs/adapters/openspec/openspec-document.ts";
import { duplicateId, toId } from "../../specs/model/assign-ids.ts";
import type { Connection } from "../../sqlite/connection.ts";
import { parentOf } from "../scan/folder.ts";
import type { StoredDiagnostic, StoredDiagnostics } from "../scan/parse-source.ts";
import type { IdKind } from "../store/block-id.ts";
import { createLinkResolver, readPlacedBlock, readStoredBlock } from "../store/block-reader.ts";
import { parseStored } from "../store/damage.ts";

/** The problems of the spec files of an index, in path, then line order. */
export function specDiagnostics(database: Connection): Diagnostic[] {
  return [
    ...fileDiagnostics(database),
    ...duplicates(database),
    ...danglingReferences(database),
    ...changeProblems(database),
  ].sort((a, b) => compare(a.path, b.path) || (a.line ?? 0) - (b.line ?? 0));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Problems of reading, parsing and validating each file. */
function fileDiagnostics(database: Connection): Diagnostic[] {
  const rows = database.all<[file: number, diagnostics: string]>(
    "SELECT id, diagnostics FROM files WHERE diagnostics <> ''",
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
function duplicates(database: Connection): Diagnostic[] {
  const bases = database.all<[string]>(
    `SELECT base FROM blocks INDEXED BY blocks_by_base WHERE id_kind = 'declared'
     GROUP BY base HAVING count(*) > 1`,
  );
  return bases.flatMap(([base]) => {
    const keys = database.all<[number]>(
      `SELECT b.key FROM blocks b JOIN files f ON f.id = b.file
       WHERE b.base = ? AND b.id_kind = 'declared' ORDER BY f.path, b.position`,
      base,
    );
    const places = keys.map(([key]) => {
      const placed = readPlacedBlock(database, key);
      return { path: placed.path, line: readStoredBlock(database, placed).span.start_line };
    });
    const [first, ...others] = places;
    return first === undefined ? [] : others.map((place) => duplicateId(base, place, first));
  });
}

/** Contradictions between open OpenSpec changes and the specs that they change. */
function changeProblems(database: Connection): Diagnostic[] {
  const keys = database.all<[number]>(
    `SELECT b.key FROM files f JOIN blocks b ON b.file = f.id
     WHERE instr(f.path, 'openspec/') > 0 AND instr(f.path, '/archive/') = 0 ORDER BY f.path, b.position`,
  );
  const ids = new Map<string, string>();
  const blocks = keys.map(([key]) => {
    const placed = readPlacedBlock(database, key);
    const { content, metadata, span } = readStoredBlock(database, placed);
    ids.set(`${placed.path} ${span.start_line}`, placed.id);
    return { path: placed.path, line: span.start_line, content, metadata };
  });
  return openspecChangeProblems(blocks).map((problem) => {
    const id = ids.get(`${problem.path} ${problem.line}`);
    return id === undefined ? problem : { ...problem, id };
  });
}

/** Links to blocks that the project does not have. */
function danglingReferences(database: Connection): Diagnostic[] {
  const candidates = database.all<[target: string, key: number]>(
    `SELECT r.target, r.key FROM refs r WHERE r.target >= 'b' AND r.target < 'c'
     AND NOT EXISTS (SELECT 1 FROM blocks b WHERE b.base = substr(r.target, 2) AND b.id_kind <> 'sequence')`,
  );
  const links = createLinkResolver(database);
  const keys = new Set(candidates.map(([, key]) => key));
  return [...keys].flatMap((key) => {
    const { id, path, links: written } = readPlacedBlock(database, key);
    // `changeProblems` reports changes of a missing requirement.
    if (openspecDocumentOf(path)?.kind === "delta") return [];
    const once = new Map(written.map((link) => [`${link.line} ${link.target}`, link]));
    return [...once.values()]
      .filter(({ target }) => links.resolve(target, parentOf(path)).length === 0)
      .map(
        ({ target, line }): Diagnostic => ({
          severity: "warning",
          rule: "dangling-reference",
          message: danglingMessage(target),
          path,
          line,
          id,
        }),
      );
  });
}

/** The author wrote "NFR-1", not the id that kit made from it. */
function danglingMessage(target: string): string {
  const code = /-requirements-(.+-\d+(?:\.\d+)*)$/.exec(target)?.[1];
  if (code === undefined || code.startsWith("req")) return `No block of this project has the id "${target}".`;
  return `${code.toUpperCase()} names no one statement of this feature's requirements: none has this code, or several have it.`;
}
