import type { SpecBlock } from "../../../protocol/spec-block.ts";
import type { WrittenSpecs } from "../../adapter.ts";
import { blocksByPath } from "../../export/blocks-by-path.ts";
import { withFrontMatter } from "../../export/section-file.ts";
import { toListItem } from "../../markdown/list-item.ts";
import { headingLine } from "../../markdown/write-segments.ts";

/** Renders each file of the blocks as its name says: a rule file, a JSON list or a list of rules. */
export function writeCursor(blocks: readonly SpecBlock[]): WrittenSpecs {
  const files = blocksByPath(blocks).map(({ path, blocks: own }) => ({
    path,
    content: contentOf(path, own),
  }));
  return { files, losses: [] };
}

function contentOf(path: string, blocks: readonly SpecBlock[]): string {
  // Only JSON holds what an entry says besides its rule, and `.cursorrules` may be JSON too.
  if (path.endsWith(".json") || blocks.some(({ metadata }) => metadata.entry !== undefined))
    return `${JSON.stringify({ rules: blocks.map(toEntry) }, null, 2)}\n`;
  const frontMatter = blocks[0]?.metadata.frontmatter;
  if (path.endsWith(".mdc")) return withFrontMatter(frontMatter, bodyOfRuleFile(blocks));
  return withFrontMatter(frontMatter, toRuleList(blocks));
}

function toEntry({ content, metadata }: SpecBlock): unknown {
  const { topic, entry } = metadata;
  if (topic === undefined && entry === undefined) return content;
  const rest = typeof entry === "object" && entry !== null ? entry : {};
  return { rule: content, ...(topic !== undefined && { topic }), ...rest };
}

/** A rule file holds one rule; one that says all in its description has no body. */
function bodyOfRuleFile(blocks: readonly SpecBlock[]): string {
  const bodies = blocks.filter(({ content, summary }) => content !== summary).map(({ content }) => content);
  return bodies.length === 0 ? "" : `${bodies.join("\n\n")}\n`;
}

function toRuleList(blocks: readonly SpecBlock[]): string {
  const lines: string[] = [];
  let topic: unknown;
  for (const [index, block] of blocks.entries()) {
    const own = block.metadata.topic;
    const opensTopic = own !== topic && typeof own === "string";
    if (opensTopic) lines.push(...(index === 0 ? [] : [""]), headingLine(own, 2), "");
    topic = own;
    // A heading with nothing below it is the rule.
    if (opensTopic && block.content === own && blocks[index + 1]?.metadata.topic !== own) continue;
    // A blank line behind a long item ends whatever it leaves open.
    const item = toListItem("-", block.content);
    lines.push(item, ...(item.includes("\n") ? [""] : []));
  }
  while (lines.at(-1) === "") lines.pop();
  return lines.length === 0 ? "" : `${lines.join("\n")}\n`;
}
