import { createHash } from "node:crypto";
import type { SpecBlock } from "../../protocol/spec-block.ts";
import { type CriteriaList, listCriteria } from "../../specs/coverage/list-criteria.ts";
import { codeOf } from "../features/stale.ts";

/** The criteria and the code that results of tests are about. */
export interface ResultSources {
  readonly criteria: CriteriaList;
  /** The code of a block: the files that it names, and those that the tasks and designs of it name. By the block's id. */
  readonly codeOfBlock: ReadonlyMap<string, ReadonlySet<string>>;
  /** Blocks that name tests. */
  readonly naming: readonly SpecBlock[];
}

/** Reads the blocks of a project once. */
export function readSources(blocks: Iterable<SpecBlock>): ResultSources {
  const codeOfBlock = new Map<string, Set<string>>();
  const naming: SpecBlock[] = [];
  const add = (id: string, paths: readonly string[]): void => {
    const known = codeOfBlock.get(id) ?? new Set();
    for (const path of paths) known.add(path);
    codeOfBlock.set(id, known);
  };
  function* noticing(): Generator<SpecBlock> {
    for (const block of blocks) {
      if (block.metadata.test_refs?.length) naming.push(block);
      const paths = codeOf(block);
      if (paths.length > 0) {
        add(block.id, paths);
        if (block.spec_type === "task" || block.spec_type === "design")
          for (const related of block.metadata.related_specs ?? []) add(related, paths);
      }
      yield block;
    }
  }
  return { criteria: listCriteria(noticing()), codeOfBlock, naming };
}

/** The key of a criterion in a map of file paths: no path contains NUL. */
export const criterionName = (id: string): string => `\0${id}`;

export function digestOfText(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}
