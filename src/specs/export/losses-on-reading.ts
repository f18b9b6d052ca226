import type { SpecBlock, SpecMetadata } from "../../protocol/spec-block.ts";
import { assembleBlocks, type ParsedFile } from "../model/assemble-blocks.ts";

/** What the files of an export do not give back of the blocks, a sentence for each block. */
export function lossesOnReading(blocks: readonly SpecBlock[], files: readonly ParsedFile[]): string[] {
  const known = new Set(
    blocks.flatMap(({ metadata }) => [...listOf(metadata.code_refs), ...listOf(metadata.test_refs)]),
  );
  const found = new Map<string, SpecBlock[]>();
  for (const block of assembleBlocks(files, (path) => known.has(path)).blocks) {
    const same = found.get(block.id);
    if (same === undefined) found.set(block.id, [block]);
    else same.push(block);
  }
  const losses: string[] = [];
  for (const block of blocks) {
    // An id that is declared twice is an error, and both blocks keep it.
    const candidates = found.get(block.id) ?? [];
    const own = candidates.find(({ path }) => path === block.path);
    if (own === undefined) losses.push(`${block.id} is not read back from ${block.path} under its id.`);
    else {
      candidates.splice(candidates.indexOf(own), 1);
      const fields = lostFields(block, own);
      if (fields.length > 0) losses.push(`${block.id} is read back with another ${fields.join(", ")}.`);
    }
  }
  const surplus = [...found.values()].flat();
  losses.push(
    ...surplus.map(({ id, path }) => `${path} is read back with ${id}, which is none of the blocks.`),
  );
  return losses;
}

const plainFields = ["spec_type", "title", "content", "summary", "lifecycle", "priority"] as const;
const references = ["code_refs", "test_refs", "related_specs"] as const;

function lostFields(block: SpecBlock, own: SpecBlock): string[] {
  const lost: string[] = plainFields.filter((field) => block[field] !== own[field]);
  if (canonical(block.tags) !== canonical(own.tags)) lost.push("tags");
  if (canonical(ownMetadata(block.metadata)) !== canonical(ownMetadata(own.metadata))) lost.push("metadata");
  for (const field of references) {
    const kept = new Set(listOf(own.metadata[field]));
    if (!listOf(block.metadata[field]).every((item) => kept.has(item))) lost.push(field);
  }
  return lost;
}

/** Metadata without what follows from the text's place in its file and in the project, and from its history. */
function ownMetadata(metadata: SpecMetadata): Readonly<Record<string, unknown>> {
  const { source: _source, related_specs: _related, code_refs: _code, test_refs: _tests, ...said } = metadata;
  const { author: _author, ...own } = said;
  const criteria = metadata.ears_patterns?.map(({ line: _line, ...criterion }) => criterion);
  return { ...own, ears_patterns: criteria };
}

function listOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

/** JSON with sorted keys: the order of keys says nothing. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) =>
    typeof item === "object" && item !== null && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).sort(([one], [other]) => (one < other ? -1 : 1)))
      : item,
  );
}
