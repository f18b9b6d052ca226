import type { Framework, SpecBlock } from "../../protocol/spec-block.ts";
import type { SpecAdapter, WrittenSpecs } from "../adapter.ts";
import { createCustomAdapter } from "../adapters/custom/custom-adapter.ts";
import { frameworkLabel } from "../frameworks.ts";
import type { ParsedFile } from "../model/assemble-blocks.ts";
import { createSpecRegistry, type SpecRegistry } from "../registry.ts";
import { lossesOnReading } from "./losses-on-reading.ts";

/** JSON and JSONL hold every block; a framework's own files hold those of the framework. */
export type SpecExportFormat = "json" | "jsonl" | Framework;

/**
 * Renders blocks as files: `specs.json` (`{"specs": [...]}`), `specs.jsonl`, or the files of a
 * framework at the paths of the blocks. A re-read gives the same blocks, except for where they stand
 * when they changed and who wrote them.
 *
 * What a format cannot hold is found by reading the rendered files back, and is listed as losses, one
 * sentence for each block. Nothing is written to disk.
 */
export function exportSpecs(
  blocks: readonly SpecBlock[],
  format: SpecExportFormat,
  registry: SpecRegistry = createSpecRegistry(),
): WrittenSpecs {
  switch (format) {
    case "json":
      return oneFile("specs.json", `${JSON.stringify({ specs: blocks }, null, 2)}\n`);
    case "jsonl":
      return oneFile("specs.jsonl", blocks.map((block) => `${JSON.stringify(block)}\n`).join(""));
    default:
      return inOwnFormat(blocks, format, registry);
  }
}

function oneFile(path: string, content: string): WrittenSpecs {
  return { files: [{ path, content }], losses: [] };
}

/** Reads what no other adapter does; the config that named those files is not known here. */
const anyFile = createCustomAdapter([{ include: "**" }]);

function inOwnFormat(
  blocks: readonly SpecBlock[],
  framework: Framework,
  registry: SpecRegistry,
): WrittenSpecs {
  const { shares, losses } = shareOut(blocks, framework, registry);
  const written = [...shares].map(([adapter, share]) => ({ adapter, ...adapter.write?.(share) }));
  const parsed = written.flatMap(({ adapter, files = [] }): ParsedFile[] =>
    files.map(({ path, content }) => ({ path, parsed: adapter.parse({ path, text: content }) })),
  );
  const files = written.flatMap((each) => each.files ?? []);
  return {
    files: files.sort((one, other) => (one.path < other.path ? -1 : 1)),
    losses: [
      ...losses,
      ...written.flatMap((each) => each.losses ?? []),
      ...lossesOnReading([...shares.values()].flat(), parsed),
    ],
  };
}

/** The blocks that each adapter of a framework writes: those in files that it would read. */
function shareOut(
  blocks: readonly SpecBlock[],
  framework: Framework,
  registry: SpecRegistry,
): { shares: Map<SpecAdapter, SpecBlock[]>; losses: string[] } {
  const shares = new Map<SpecAdapter, SpecBlock[]>();
  const losses: string[] = [];
  for (const block of blocks) {
    const reader = registry.adapterFor(block.path) ?? (framework === "custom" ? anyFile : undefined);
    if (block.framework !== framework) {
      losses.push(`${block.id} is left out: it is a block of ${frameworkLabel(block.framework)}.`);
    } else if (reader?.framework !== framework) {
      losses.push(`${block.id} is left out: ${block.path} is no file of ${frameworkLabel(framework)}.`);
    } else if (reader.write === undefined) {
      losses.push(`${block.id} is left out: the adapter "${reader.name}" writes no files.`);
    } else {
      const share = shares.get(reader);
      if (share === undefined) shares.set(reader, [block]);
      else share.push(block);
    }
  }
  return { shares, losses };
}
