import type { SpecBlock } from "../../protocol/spec-block.ts";
import type { SegmentParent, WritableSegment } from "../markdown/segments.ts";

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
