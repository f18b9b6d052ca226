import { KitError } from "../../base/kit-error.ts";
import type {
  AffectedSpec,
  ComparedSpecs,
  Impact,
  ImpactEdge,
  ImpactGraph,
  ImpactRequest,
  SameFeature,
  SpecEdgeKind,
  SpecGraph,
} from "../../protocol/spec-query.ts";
import { isTestPath } from "../../specs/model/mentions.ts";
import type { Connection } from "../../sqlite/statements.ts";
import type { PlacedBlock } from "../store/block-reader.ts";
import { classIdOf, keysOfId, readClasses } from "../store/block-row.ts";
import { type BlockEdge, createEdges, type NamedFiles } from "./edges.ts";
import { invalid, pageList } from "./page.ts";

/** The share of a change that an edge passes on. */
const edgeWeights: Readonly<Record<SpecEdgeKind, number>> = {
  defines: 1,
  code_ref: 0.9,
  test_ref: 0.8,
  implements: 0.8,
  validates: 0.7,
  covered_by: 0.8,
  related: 0.6,
  same_feature: 0.3,
};

/** The limit of blocks read per feature; hardly any feature is larger. */
const maxSameFeature = 10_000;

interface Reached {
  readonly block: PlacedBlock;
  readonly score: number;
  readonly path: readonly ImpactEdge[];
}

/** Test files, and the ids of the blocks whose criteria they name. */
export type NamedSpecs = ReadonlyMap<string, readonly string[]>;

export interface FindImpactOptions extends NamedFiles {
  readonly request: ImpactRequest;
  readonly compared?: ComparedSpecs | undefined;
  readonly specsOfTests?: NamedSpecs | undefined;
}

/**
 * Finds what a change of files or blocks affects. The score of a block is the highest product of edge weights over all paths of
 * at most `depth` edges. The blocks of the request are not among the affected. A same-feature edge is always the last edge of its
 * path, and starts from the most affected block of the feature; the blocks that it reaches are only counted, unless the request
 * expands features. Obsolete blocks are left out by default.
 *
 * Throws `spec_not_found` for an unknown id, `invalid_request` for a depth other than 1 to 5.
 */
export function findImpact(database: Connection, options: FindImpactOptions): Impact {
  const { request, hasFile, compared, specsOfTests } = options;
  const { files = [], ids = [], depth = 2, expand_features: isExpanded = false } = request;
  if (!Number.isInteger(depth) || depth < 1 || depth > 5)
    throw invalid("depth", "must be a whole number from 1 to 5");
  const edges = createEdges(database, options);
  const classes = readClasses(database);
  const requested = new Map<number, Reached>();
  for (const id of ids) {
    const [key] = keysOfId(database, id);
    if (key === undefined) throw notFound(id);
    requested.set(key, { block: edges.block(key), score: 1, path: [] });
  }
  const best = new Map<number, Reached>();
  const obsolete = new Set<number>();
  let frontier = new Map<number, Reached>();
  const reach = (
    from: { readonly name: string; readonly score: number; readonly path: readonly ImpactEdge[] },
    edge: BlockEdge,
  ): void => {
    const score = from.score * edgeWeights[edge.kind];
    const { key, id } = edge.to;
    if (request.include_obsolete !== true && classes.get(classIdOf(edge.to.key))?.lifecycle === "obsolete") {
      if (edge.kind !== "same_feature" && !requested.has(key)) obsolete.add(key);
      return;
    }
    if (requested.has(key) || (best.get(key)?.score ?? 0) >= score) return;
    const impacted = {
      block: edge.to,
      score,
      path: [...from.path, { from: from.name, to: id, kind: edge.kind }],
    };
    best.set(key, impacted);
    frontier.set(key, impacted);
  };
  const changed = new Set(files.map(toProjectPath));
  const comparedFiles = new Set(compared?.files);
  const differing = new Set(compared?.specs.map(({ id }) => id));
  const isAffected = (file: string, { kind, to }: BlockEdge): boolean =>
    !comparedFiles.has(file) || (kind === "defines" && differing.has(to.id));
  for (const file of changed) {
    for (const edge of edges.fromFile(file))
      if (isAffected(file, edge)) reach({ name: file, score: 1, path: [] }, edge);
    for (const id of specsOfTests?.get(file) ?? [])
      for (const key of keysOfId(database, id).slice(0, 1))
        reach({ name: file, score: 1, path: [] }, { kind: "covered_by", to: edges.block(key) });
  }
  // A path starts at a block of the request, as it starts at a file: its edges count from one.
  let expanding = [...requested.values()];
  const features = new Set<string>();
  for (let length = 1; length <= depth; length += 1) {
    for (const { block, score, path } of expanding.sort((a, b) => b.score - a.score)) {
      if (path.at(-1)?.kind === "same_feature") continue;
      const from = { name: block.id, score, path };
      for (const edge of edges.fromBlock(block)) reach(from, edge);
      if (block.feature === undefined || features.has(block.feature)) continue;
      features.add(block.feature);
      for (const edge of edges.ofFeature(block, maxSameFeature)) reach(from, edge);
    }
    expanding = [...frontier.values()];
    frontier = new Map();
  }
  const affected = [...best.values()];
  const isFolded = ({ path }: Reached): boolean => !isExpanded && path.at(-1)?.kind === "same_feature";
  const listed = affected.filter((each) => !isFolded(each));
  const all = toImpact([...requested.values()], { affected: listed, changed, edges, hasFile });
  const { limit, cursor, graph: isDrawn = false, ...about } = request;
  const page = { limit, cursor };
  const { items, ...rest } = pageList(all.affected, page, { about, keyOf: ({ id }) => id });
  return {
    ...rest,
    affected: items,
    same_feature: countByFeature(affected.filter(isFolded)),
    obsolete_count: obsolete.size,
    tests: all.tests,
    files: all.files,
    ...(compared !== undefined && { changed_specs: [...compared.specs] }),
    ...(isDrawn && {
      graph: drawImpact(database, {
        requested: [...requested.values()],
        page: items.flatMap(({ id }) => affected.find(({ block }) => block.id === id) ?? []),
        changed,
        edges,
      }),
    }),
  };
}

/** The edges from a block to a file. */
const fileEdges: ReadonlySet<SpecEdgeKind> = new Set(["code_ref", "test_ref", "covered_by"]);

/** More edges than a person can follow are left out of a graph. */
const maxDrawn = 2_000;

/**
 * The graph of a page: its blocks, the paths that lead to them, and the files that they name. Edges have the direction in which
 * the source states them.
 */
function drawImpact(
  database: Connection,
  {
    requested,
    page,
    changed,
    edges,
  }: {
    readonly requested: readonly Reached[];
    readonly page: readonly Reached[];
    readonly changed: ReadonlySet<string>;
    readonly edges: ReturnType<typeof createEdges>;
  },
): ImpactGraph {
  const classes = readClasses(database);
  const nodes = new Map<string, ImpactGraph["nodes"][number]>();
  const drawn = new Map<string, ImpactGraph["edges"][number]>();
  const blocks = new Map<string, PlacedBlock>();
  const addFile = (id: string): void => {
    const kind = isTestPath(id) ? "test" : "file";
    if (!nodes.has(id)) nodes.set(id, { id, kind, title: id, ...(changed.has(id) && { changed: true }) });
  };
  const addBlock = (block: PlacedBlock, isRequested = false): void => {
    if (blocks.has(block.id)) return;
    const [title] = database.get<[string]>("SELECT title FROM blocks WHERE key = ?", block.key) ?? [block.id];
    const kind = classes.get(classIdOf(block.key))?.spec_type ?? "constraint";
    blocks.set(block.id, block);
    nodes.set(block.id, { id: block.id, kind, title, ...(isRequested && { changed: true }) });
  };
  const addEdge = (edge: ImpactGraph["edges"][number]): void => {
    drawn.set(`${edge.from}\n${edge.to}\n${edge.kind}`, edge);
  };
  for (const { block } of requested) addBlock(block, true);
  for (const { block } of page) addBlock(block);
  for (const { path } of page) {
    for (const { from, to, kind } of path) {
      for (const id of [from, to]) {
        if (nodes.has(id)) continue;
        const [key] = changed.has(id) ? [] : keysOfId(database, id);
        if (key === undefined) addFile(id);
        else addBlock(edges.block(key));
      }
      if (kind === "defines" || kind === "same_feature") addEdge({ from, to, kind });
      // A path leads from the file; the block is what names it.
      else if (changed.has(from)) addEdge({ from: to, to: from, kind });
    }
  }
  for (const block of blocks.values()) {
    for (const { to, kind } of edges.linksOf(block))
      if (blocks.has(to.id)) addEdge({ from: block.id, to: to.id, kind });
    for (const { path, kind } of edges.filesOf(block)) addEdge({ from: block.id, to: path, kind });
    if (drawn.size > maxDrawn) break;
  }
  const graphEdges = [...drawn.values()].slice(0, maxDrawn);
  for (const { to, kind } of graphEdges) if (fileEdges.has(kind)) addFile(to);
  return {
    nodes: [...nodes.values()],
    edges: graphEdges,
    omitted: Math.max(0, drawn.size - graphEdges.length),
  };
}

function countByFeature(folded: readonly Reached[]): SameFeature[] {
  const counts = new Map<string, number>();
  for (const { block } of folded) {
    const feature = block.feature ?? block.path;
    counts.set(feature, (counts.get(feature) ?? 0) + 1);
  }
  return [...counts]
    .map(([feature, specs]) => ({ feature, specs }))
    .sort((count, other) => other.specs - count.specs || (count.feature < other.feature ? -1 : 1));
}

function toImpact(
  requested: readonly Reached[],
  {
    affected,
    changed,
    edges,
    hasFile,
  }: {
    readonly affected: readonly Reached[];
    readonly changed: ReadonlySet<string>;
    readonly edges: ReturnType<typeof createEdges>;
    readonly hasFile: (path: string) => boolean;
  },
): Pick<Impact, "affected" | "tests" | "files"> {
  const tests = new Set([...changed].filter((path) => isTestPath(path) && hasFile(path)));
  const files = new Set<string>();
  for (const { block, path } of [...requested, ...affected]) {
    files.add(block.path);
    // A block reached only through its feature is often unaffected, so its tests are not listed.
    if (path.at(-1)?.kind === "same_feature") continue;
    for (const file of edges.filesOf(block)) {
      files.add(file.path);
      if (file.kind === "test_ref") tests.add(file.path);
    }
  }
  const specs = affected.map(
    ({ block, score, path }): AffectedSpec => ({ id: block.id, score: round(score), path }),
  );
  specs.sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1));
  return { affected: specs, tests: [...tests].sort(), files: [...files].sort() };
}

/** Products of decimal weights, without the noise of binary fractions. */
function round(score: number): number {
  return Math.round(score * 1e6) / 1e6;
}

function toProjectPath(file: string): string {
  return file.replace(/^(?:\.\/)+/, "");
}

function notFound(id: string): KitError<"spec_not_found"> {
  return new KitError({
    code: "spec_not_found",
    message: `No spec has the id ${JSON.stringify(id.slice(0, 200))}.`,
    hint: "List the ids with: kit specs list",
  });
}

type Node = SpecGraph["nodes"][number];

/**
 * All blocks and the files they name, with the edges that the sources state: links between blocks, and mentions of files. Blocks
 * come first, in path, then position order; files follow by path.
 */
export function specGraph(database: Connection, namedFiles: NamedFiles): SpecGraph {
  const links = createEdges(database, namedFiles);
  const nodes: Node[] = [];
  const files = new Map<string, Node>();
  const edges: ImpactEdge[] = [];
  const rows = database.all<[key: number, title: string]>(
    `SELECT b.key, b.title FROM files f CROSS JOIN blocks b ON b.file = f.id ORDER BY f.path, b.position`,
  );
  for (const [key, title] of rows) {
    const block = links.block(key);
    nodes.push({ id: block.id, kind: "spec", title });
    const seen = new Set<string>();
    const add = (to: string, kind: ImpactEdge["kind"]): void => {
      const name = `${kind} ${to}`;
      if (!seen.has(name)) edges.push({ from: block.id, to, kind });
      seen.add(name);
    };
    for (const { to, kind } of links.linksOf(block)) add(to.id, kind);
    for (const { path, kind } of links.filesOf(block)) {
      add(path, kind);
      files.set(path, { id: path, kind: isTestPath(path) ? "test" : "file", title: path });
    }
  }
  const fileNodes = [...files.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  return { nodes: [...nodes, ...fileNodes], edges };
}

/** All pages of an impact in one answer, for callers that cut it differently. */
export function wholeImpact(ask: (request: ImpactRequest) => Impact, request: ImpactRequest): Impact {
  const { next_cursor, ...first } = ask({ ...request, limit: 1_000 });
  const affected = [...first.affected];
  for (let cursor = next_cursor; cursor !== undefined; ) {
    const page = ask({ ...request, limit: 1_000, cursor });
    affected.push(...page.affected);
    cursor = page.next_cursor;
  }
  return { ...first, affected };
}
