import type { SpecType } from "../../protocol/spec-block.ts";
import type { SpecDraft } from "../../specs/adapter.ts";
import { indexOf } from "../project-index.ts";
import { createEdges } from "../query/edges.ts";
import { parentOf } from "../scan/tree.ts";
import { createLinkResolver, readStoredBlock } from "../store/block-reader.ts";
import { baseOf } from "../store/block-row.ts";
import type { LinePlace } from "./open-criteria.ts";
import type { OpenText, TextLayer } from "./text-layer.ts";

/** A block of an open spec: the lines are those of the open text. */
export interface OpenBlock {
  readonly draft: SpecDraft;
  /** How many blocks of the text before this one asked for the same id. */
  readonly nth: number;
}

/** A block that another one links to, or that links to it. */
export interface LinkedBlock extends LinePlace {
  readonly title: string;
  readonly spec_type: SpecType;
}

interface OpenBlocks {
  readonly all: readonly OpenBlock[];
  readonly byBase: ReadonlyMap<string, readonly OpenBlock[]>;
}

/** An open text never changes: each edit makes another one. */
const known = new WeakMap<OpenText, OpenBlocks>();

/** The blocks of an open text, in its order. */
export function openBlocks(opened: OpenText): readonly OpenBlock[] {
  return blocksOf(opened).all;
}

function blocksOf(opened: OpenText): OpenBlocks {
  const cached = known.get(opened);
  if (cached !== undefined) return cached;
  const byBase = new Map<string, OpenBlock[]>();
  const all = (opened.source().specs?.drafts ?? []).map((draft) => {
    const base = baseOf(draft.id);
    const same = byBase.get(base) ?? [];
    const block = { draft, nth: same.length };
    same.push(block);
    byBase.set(base, same);
    return block;
  });
  const blocks = { all, byBase };
  known.set(opened, blocks);
  return blocks;
}

/** The blocks that a block of an open text links to, by the open text, and those that link to it, by the index; each once. */
export function linkedBlocks(
  layer: TextLayer,
  opened: OpenText,
  { draft, nth }: OpenBlock,
): readonly LinkedBlock[] {
  const index = indexOf(layer.project);
  return index.read((database) => {
    const edges = createEdges(database, index);
    const resolver = createLinkResolver(database);
    const keys = database.all<[number]>(
      "SELECT key FROM blocks WHERE base = ? AND file = (SELECT id FROM files WHERE path = ?) ORDER BY position",
      ...[baseOf(draft.id), opened.path],
    );
    const [own] = keys[nth] ?? [];
    const targets = draft.links.flatMap(({ target }) => resolver.resolve(target, parentOf(opened.path)));
    const linking = own === undefined ? [] : edges.linksTo(edges.block(own));
    const found = [...targets.map(({ key }) => edges.block(key)), ...linking.map(({ to }) => to)];
    const others = new Map(found.filter(({ key }) => key !== own).map((block) => [block.key, block]));
    return [...others.values()].map((block) => {
      const { path, base } = block;
      const open = layer.at(path);
      const same = open && blocksOf(open).byBase.get(base);
      // The open text does not say which of several blocks with one id this is.
      const { title, span, spec_type } =
        same?.length === 1 && same[0] ? same[0].draft : readStoredBlock(database, block);
      return { path, line: span.start_line, title, spec_type };
    });
  });
}
