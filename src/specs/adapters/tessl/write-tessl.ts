import type { SpecBlock } from "../../../protocol/spec-block.ts";
import type { WrittenSpecs } from "../../adapter.ts";
import { blocksByPath } from "../../export/blocks-by-path.ts";
import { toWritableSegment, withFrontMatter } from "../../export/section-file.ts";
import { type WritableSegment, writeSegments } from "../../markdown/write-segments.ts";

/** Renders each file of the blocks, with its front matter and its targets. */
export function writeTessl(blocks: readonly SpecBlock[]): WrittenSpecs {
  const files = blocksByPath(blocks).map(({ path, blocks: own }) => ({
    path,
    content: withFrontMatter(own[0]?.metadata.frontmatter, writeSegments(segmentsOfFile(own))),
  }));
  return { files, losses: [] };
}

/** The targets stand behind the introduction, in a section of their own. */
function segmentsOfFile(blocks: readonly SpecBlock[]): WritableSegment[] {
  const segments = blocks.map(toWritableSegment);
  const annotations = blocks[0]?.metadata.annotations;
  if (!Array.isArray(annotations)) return segments;
  const at = segments.findIndex(({ level }) => level > 1);
  const next = segments[at];
  const above = next?.parents[0] ?? segments.find(({ level }) => level === 1)?.title;
  const hasTitle = next === undefined || next.level - next.parents.length < 2;
  const target: WritableSegment = {
    title: "Target",
    level: 2,
    parents: above !== undefined && hasTitle ? [above] : [],
    body: annotations.join("\n"),
  };
  return at === -1 ? [...segments, target] : [...segments.slice(0, at), target, ...segments.slice(at)];
}
