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
  const segments = blocks.map((block) => ({ ...toWritableSegment(block), body: bodyOf(block) }));
  const annotations = blocks[0]?.metadata.annotations;
  if (!Array.isArray(annotations)) return segments;
  const at = segments.findIndex(({ level }) => level > 1);
  const next = segments[at];
  const above = next === undefined ? titleOf(segments) : next.parents.filter(({ level }) => level === 1);
  // What stands directly below the title, or below nothing, must not come to lie below the targets.
  const level = next === undefined || next.level === 2 || next.parents.at(-1)?.level === 2 ? 2 : next.level;
  const target: WritableSegment = { title: "Target", level, parents: above, body: annotations.join("\n") };
  return at === -1 ? [...segments, target] : [...segments.slice(0, at), target, ...segments.slice(at)];
}

/** A capability may say all it says in its title. */
function bodyOf({ content, title, spec_type }: SpecBlock): string {
  const isBare = content === title && spec_type === "requirement" && !/^capabilities$/i.test(title);
  return isBare ? "" : content;
}

function titleOf(segments: readonly WritableSegment[]): WritableSegment["parents"] {
  const last = segments.findLast(({ level }) => level === 1);
  return last?.title === undefined ? [] : [{ level: 1, title: last.title }];
}
