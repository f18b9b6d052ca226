import type { SpecBlock } from "../../../protocol/spec-block.ts";
import type { WrittenSpecs } from "../../adapter.ts";
import { blocksByPath } from "../../export/blocks-by-path.ts";
import { toWritableSegment, withFrontMatter } from "../../export/section-file.ts";
import { writeSegments } from "../../markdown/write-segments.ts";

/** Renders each file of the blocks: its front matter, then a section per block. */
export function writeClaude(blocks: readonly SpecBlock[]): WrittenSpecs {
  const files = blocksByPath(blocks).map(({ path, blocks: own }) => ({
    path,
    content: withFrontMatter(
      own[0]?.metadata.frontmatter,
      writeSegments(own.map(toWritableSegment), { titleIsBody: true }),
    ),
  }));
  return { files, losses: [] };
}
