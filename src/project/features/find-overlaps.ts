import { defined } from "../../base/record.ts";
import { featurePathOf } from "../../specs/coverage/list-criteria.ts";
import type { Project } from "../project.ts";
import { findMergeBase } from "../scan/git/git-state.ts";
import {
  adapterNameOf,
  type Delta,
  draftsOf,
  type Overlap,
  type OverlapOptions,
  type OverlapPart,
  type OverlapReport,
  readCommit,
  readSides,
  type Side,
} from "./overlap-sides.ts";

/** `specOverlaps`. */
export async function findOverlaps(
  project: Pick<Project, "root" | "specs">,
  options: OverlapOptions = {},
): Promise<OverlapReport> {
  const { sides, base, notes } = await readSides(project, options);
  const deltas = sides.flatMap(({ deltas }) => deltas);
  const overlaps = [
    ...claimedTwice(deltas),
    ...changedBelow(sides),
    ...(await changedTwice(project, sides, options.signal)),
  ];
  const order = ({ parts: [first] }: Overlap): string =>
    `${first?.path}\0${String(first?.line).padStart(9, "0")}`;
  return {
    overlaps: overlaps.toSorted((one, other) => (order(one) < order(other) ? -1 : 1)),
    ...(base !== undefined && { base }),
    branches: sides.flatMap(({ branch }) => (branch === undefined || branch === base ? [] : [branch])),
    notes,
  };
}

/** (a) Requirements that several open changes claim. */
function claimedTwice(deltas: readonly Delta[]): readonly Overlap[] {
  return [...Map.groupBy(deltas, ({ key }) => key).values()].flatMap((claims): readonly Overlap[] => {
    // A branch has the changes of the work tree, too: each change counts once.
    const byChange = new Map(claims.toReversed().map((claim) => [claim.change, claim]));
    const [first] = claims;
    if (first === undefined || byChange.size < 2) return [];
    const parts = claims.filter((claim) => byChange.get(claim.change) === claim).map(toPart);
    return [{ kind: "changes", feature: first.feature, title: first.title, parts }];
  });
}

/** (b) Requirements that an open change modifies, and the base has changed in the meantime. */
function changedBelow(sides: readonly Side[]): readonly Overlap[] {
  const open = new Map<string, Delta>();
  for (const { deltas, base } of sides)
    for (const delta of deltas) {
      const name = `${delta.change}\n${delta.key}`;
      if (base.keys.has(delta.key) && !base.closed.has(delta.change) && !open.has(name))
        open.set(name, delta);
    }
  return Array.from(open.values(), (delta) => ({
    kind: "base",
    feature: delta.feature,
    title: delta.title,
    parts: [toPart(delta)],
  }));
}

function toPart({ branch, change, delta, path, line }: Delta): OverlapPart {
  return { change, path, line, ...defined({ branch, delta }) };
}

/** (c) Blocks of Kiro and Spec Kit with other words on two sides than on the commit that both began with. */
async function changedTwice(
  { root }: Pick<Project, "root">,
  sides: readonly Side[],
  signal: AbortSignal | undefined,
): Promise<readonly Overlap[]> {
  const found = new Map<
    string,
    { readonly block: BlockText; readonly path: string; readonly parts: Map<Side, OverlapPart> }
  >();
  for (const [at, one] of sides.entries())
    for (const other of sides.slice(at + 1)) {
      const paths = pathsOfBoth(one, other);
      const pair = [one.commit, other.commit] as const;
      const start = paths.length === 0 ? undefined : await findMergeBase({ root, signal }, pair);
      if (start === undefined) continue;
      const before = await readCommit({ root, signal }, start, paths);
      const [ours, theirs] = [await one.texts(paths), await other.texts(paths)];
      for (const path of paths) {
        const [old, left, right] = [before, ours, theirs].map((texts) => blocksOf(path, texts.get(path)));
        for (const [id, block] of [...(right ?? []), ...(left ?? [])]) {
          const [was, mine, their] = [old, left, right].map((blocks) => blocks?.get(id));
          if (mine?.text === was?.text || their?.text === was?.text || mine?.text === their?.text) continue;
          const entry = found.get(`${path}\0${id}`) ?? { block, path, parts: new Map() };
          for (const [side, own] of [
            [one, mine],
            [other, their],
          ] as const)
            entry.parts.set(side, { path, line: (own ?? block).line, ...defined({ branch: side.branch }) });
          found.set(`${path}\0${id}`, entry);
        }
      }
    }
  return Array.from(found.values(), ({ block, path, parts }) => ({
    kind: "branches",
    feature: featurePathOf(path).split("/").at(-1) ?? path,
    title: block.title,
    parts: [...parts.values()],
  }));
}

/** Files of Kiro and Spec Kit that both sides have changed. */
function pathsOfBoth(one: Side, other: Side): readonly string[] {
  const [ours, theirs] = [
    one.isBase ? other.base.files : one.changed,
    other.isBase ? one.base.files : other.changed,
  ];
  return [...ours].filter(
    (path) => theirs.has(path) && ["kiro", "speckit"].includes(adapterNameOf(path) ?? ""),
  );
}

interface BlockText {
  readonly title: string;
  readonly line: number;
  readonly text: string;
}

/** The blocks of a file by id; the second one with an id has a number. */
function blocksOf(path: string, text: string | undefined): ReadonlyMap<string, BlockText> {
  const blocks = new Map<string, BlockText>();
  for (const { id, title, content, span } of text === undefined ? [] : draftsOf(path, text)) {
    const name = id.kind === "sequence" ? `${id.prefix}${title}` : id.value;
    let unique = name;
    for (let n = 2; blocks.has(unique); n += 1) unique = `${name}-${n}`;
    blocks.set(unique, {
      title,
      line: span.start_line,
      text: `${title}\n${content.replaceAll("\r\n", "\n")}`,
    });
  }
  return blocks;
}
