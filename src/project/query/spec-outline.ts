import { specTypes } from "../../protocol/enums.ts";
import type { Framework, SpecMetadata, SpecType } from "../../protocol/spec-block.ts";
import type {
  OutlineBlock,
  OutlinePage,
  OutlineQuery,
  SpecFeature,
  SpecFeaturePage,
  SpecFeatureQuery,
} from "../../protocol/spec-outline.ts";
import { isProposed } from "../../specs/adapters/openspec/openspec-document.ts";
import { labelFeatures } from "../../specs/coverage/feature-labels.ts";
import { toId } from "../../specs/model/assemble-blocks.ts";
import type { Connection } from "../../sqlite/statements.ts";
import type { SourceCatalog } from "../scan/source-catalog.ts";
import { type BlockClass, type IdKind, readClasses, toKey } from "../store/block-row.ts";
import { parseStored } from "../store/open-index.ts";
import { digestOf, pageList, parseCursor, toCursor, wrongCursor } from "./page.ts";

/**
 * The features of a project, by framework, then path: a folder of documents, or a single file, with the numbers of its blocks.
 * Leaves out obsolete blocks, as lists do.
 */
export function readFeatures(database: Connection, toolOf: SourceCatalog["toolOf"]): readonly SpecFeature[] {
  const classes = readClasses(database);
  const rows = database.all<[classId: number, feature: string, blocks: number]>(
    `SELECT b.key / ${toKey(1, 0)} AS class, coalesce(b.feature, f.path) AS feature, count(*)
     FROM blocks b CROSS JOIN files f ON f.id = b.file GROUP BY 1, 2`,
  );
  const counts = new Map<Framework, Map<string, Partial<Record<SpecType, number>>>>();
  for (const [id, feature, blocks] of rows) {
    const found = classes.get(id);
    if (found === undefined || found.lifecycle === "obsolete") continue;
    const features = counts.get(found.framework) ?? new Map<string, Partial<Record<SpecType, number>>>();
    const byType = features.get(feature) ?? {};
    byType[found.spec_type] = (byType[found.spec_type] ?? 0) + blocks;
    counts.set(found.framework, features.set(feature, byType));
  }
  return [...counts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([framework, features]) =>
      labelFeatures([...features.keys()].sort(byState)).map(({ path, label }): SpecFeature => {
        const counts_by_type = features.get(path) ?? {};
        const blocks = Object.values(counts_by_type).reduce((sum, each) => sum + each, 0);
        const tool = toolOf({ framework, path });
        return { framework, tool, feature: path, name: label, blocks, counts_by_type };
      }),
    );
}

/** The order of features: current ones, then proposed ones, each by path. */
function byState(path: string, other: string): number {
  const difference = Number(isProposed(path)) - Number(isProposed(other));
  return difference || (path < other ? -1 : 1);
}

export function pageFeatures(all: readonly SpecFeature[], query: SpecFeatureQuery): SpecFeaturePage {
  const { framework, feature, q, ...page } = query;
  const words = q?.toLowerCase().split(/\s+/) ?? [];
  const found = all.filter((each) => {
    const text = `${each.name} ${each.feature}`.toLowerCase();
    return (
      (framework === undefined || each.framework === framework) &&
      (feature === undefined || each.feature === feature) &&
      words.every((word) => text.includes(word))
    );
  });
  const counts_by_framework: Record<string, number> = {};
  const counts_by_tool: Record<string, number> = {};
  for (const { framework: id, tool, blocks } of all) {
    counts_by_framework[id] = (counts_by_framework[id] ?? 0) + blocks;
    counts_by_tool[tool] = (counts_by_tool[tool] ?? 0) + blocks;
  }
  const keyOf = (each: SpecFeature): string => `${each.framework} ${each.feature}`;
  const { items, ...rest } = pageList(found, page, { about: { framework, feature, q }, keyOf });
  return { features: items, ...rest, counts_by_framework, counts_by_tool };
}

/** One page of the blocks of a feature, in path, then position order, without their texts. */
export function readOutline(
  database: Connection,
  { query, features }: { readonly query: OutlineQuery; readonly features: readonly SpecFeature[] },
): OutlinePage {
  const { framework, feature, spec_type, limit = 50, cursor } = query;
  const known = features.find((each) => each.framework === framework && each.feature === feature);
  const classes = new Map(
    [...readClasses(database)].filter(
      ([, each]) =>
        each.framework === framework &&
        each.lifecycle !== "obsolete" &&
        (spec_type === undefined || each.spec_type === spec_type),
    ),
  );
  const types: readonly SpecType[] = spec_type === undefined ? specTypes : [spec_type];
  const total_count = types.reduce((sum, type) => sum + (known?.counts_by_type[type] ?? 0), 0);
  const [path, position]: readonly [string, number] =
    cursor === undefined ? ["", -1] : placeOf(query, cursor);
  const rows = database.all<OutlineRow>(
    `SELECT b.key / ${toKey(1, 0)}, f.path, b.position, b.id_kind, b.base, b.n, b.title, b.start_line, b.metadata
     FROM files f CROSS JOIN blocks b ON b.file = f.id
     WHERE f.id IN (SELECT file FROM features WHERE feature = ? UNION SELECT id FROM files WHERE path = ?)
     AND f.path >= ? AND (f.path > ? OR b.position > ?) AND coalesce(b.feature, f.path) = ?
     AND b.key / ${toKey(1, 0)} IN (SELECT value FROM json_each(?)) ORDER BY f.path, b.position LIMIT ?`,
    ...[feature, feature, path, path, position, feature, JSON.stringify([...classes.keys()]), limit + 1],
  );
  const last = rows.length > limit ? rows[limit - 1] : undefined;
  return {
    blocks: rows.slice(0, limit).flatMap((row) => toOutlineBlock(row, classes)),
    total_count,
    ...(last !== undefined && { next_cursor: toCursor(digestOfOutline(query), [last[1], last[2]]) }),
  };
}

type OutlineRow = readonly [
  classId: number,
  path: string,
  position: number,
  idKind: IdKind,
  base: string,
  n: number,
  title: string,
  line: number,
  metadata: string,
];

function toOutlineBlock(
  [classId, path, , kind, base, n, title, line, metadata]: OutlineRow,
  classes: ReadonlyMap<number, BlockClass>,
): readonly OutlineBlock[] {
  const found = classes.get(classId);
  if (found === undefined) return [];
  const { status, ears_patterns = [] } = parseStored<SpecMetadata>(metadata);
  const { spec_type, lifecycle } = found;
  const block = { id: toId(kind, base, n), title, spec_type, lifecycle, path, line };
  return [{ ...block, criteria: ears_patterns.length, ...(status !== undefined && { status }) }];
}

function digestOfOutline({ framework, feature, spec_type }: OutlineQuery): string {
  return digestOf([framework, feature, spec_type]);
}

function placeOf(query: OutlineQuery, cursor: string): [string, number] {
  const [path, position] = parseCursor(digestOfOutline(query), cursor);
  if (typeof path !== "string" || typeof position !== "number") throw wrongCursor();
  return [path, position];
}
