import type { SpecBlock } from "../../protocol/spec-block.ts";
import type { SegmentParent } from "../markdown/segments.ts";
import type { WritableSegment } from "../markdown/write-segments.ts";

/**
 * A block as the section it was read from: `metadata.level` (0 for text before the first heading) and
 * `metadata.parents`. A block without a level becomes a second-level section.
 */
export function toWritableSegment(block: SpecBlock): WritableSegment {
  const { level, parents } = block.metadata;
  if (level === 0) return { level: 0, parents: [], body: block.content };
  return {
    title: block.title,
    level: typeof level === "number" ? level : 2,
    parents: Array.isArray(parents) ? parents.filter(isParent) : [],
    body: block.content,
  };
}

function isParent(value: unknown): value is SegmentParent {
  if (typeof value !== "object" || value === null || !("title" in value) || !("level" in value)) return false;
  return typeof value.title === "string" && typeof value.level === "number";
}

/** A text with front matter before it; one that has none never begins with something like it. */
export function withFrontMatter(frontMatter: unknown, body: string): string {
  if (typeof frontMatter === "string" && frontMatter !== "") {
    return body === "" ? `---\n${frontMatter}\n---\n` : `---\n${frontMatter}\n---\n\n${body}`;
  }
  return body.startsWith("---") ? `\n${body}` : body;
}
