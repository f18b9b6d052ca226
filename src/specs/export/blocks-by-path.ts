import type { SpecBlock } from "../../protocol/spec-block.ts";

/** The blocks of each file, files and blocks in the order in which a project lists them. */
export function blocksByPath(blocks: readonly SpecBlock[]): { path: string; blocks: SpecBlock[] }[] {
  const files = new Map<string, SpecBlock[]>();
  for (const block of blocks) {
    const file = files.get(block.path);
    if (file === undefined) files.set(block.path, [block]);
    else file.push(block);
  }
  // A search result comes ranked; the place in the source says where a block belongs. Sorting is
  // stable, so blocks that come from no file keep the order they are given in.
  return [...files]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([path, own]) => ({
      path,
      blocks: own.sort((one, other) => startOf(one) - startOf(other)),
    }));
}

function startOf(block: SpecBlock): number {
  return block.metadata.source?.start_line ?? 0;
}
