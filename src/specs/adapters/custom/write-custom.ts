import { stringify } from "yaml";
import type { SpecBlock } from "../../../protocol/spec-block.ts";
import type { WrittenSpecs } from "../../adapter.ts";
import { dataFormatOf } from "../../data/read-records.ts";
import { blocksByPath } from "../../export/blocks-by-path.ts";
import { withFrontMatter } from "../../export/section-file.ts";
import { toRecord } from "../../export/spec-record.ts";

/** Renders each file of the blocks in the format that its name says. */
export function writeCustom(blocks: readonly SpecBlock[]): WrittenSpecs {
  const files = blocksByPath(blocks).map(({ path, blocks: own }) => ({
    path,
    content: contentOf(path, own),
  }));
  return { files, losses: [] };
}

function contentOf(path: string, blocks: readonly SpecBlock[]): string {
  switch (dataFormatOf(path)) {
    case "json":
      return `${JSON.stringify({ specs: blocks.map(toRecord) }, null, 2)}\n`;
    case "jsonl":
      return blocks.map((block) => `${JSON.stringify(toRecord(block))}\n`).join("");
    case "yaml":
      return toYaml({ specs: blocks.map(toRecord) });
    case undefined:
      return markdownOf(blocks);
  }
}

/** A Markdown file holds one block: its first one. */
function markdownOf([block]: readonly SpecBlock[]): string {
  if (block === undefined) return "";
  const { content, ...fields } = toRecord(block);
  return withFrontMatter(toYaml(fields).trimEnd(), `${String(content)}\n`);
}

/** Long texts stay on one line, because folding them would not read back the same everywhere. */
function toYaml(value: unknown): string {
  return stringify(value, { lineWidth: 0, aliasDuplicateObjects: false });
}
