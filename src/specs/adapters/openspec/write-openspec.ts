import type { SpecBlock } from "../../../protocol/spec-block.ts";
import type { WrittenSpecs } from "../../adapter.ts";
import { blocksByPath } from "../../export/blocks-by-path.ts";
import { toWritableSegment, withFrontMatter } from "../../export/section-file.ts";
import { toListItem } from "../../markdown/list-item.ts";
import { headingLine, type WritableSegment, writeSegments } from "../../markdown/write-segments.ts";
import { taskMarker } from "../../model/task-status.ts";
import { openspecDocumentOf } from "./openspec-path.ts";

/** Renders each file of the blocks as OpenSpec lays it out. */
export function writeOpenspec(blocks: readonly SpecBlock[]): WrittenSpecs {
  const files = blocksByPath(blocks).map(({ path, blocks: own }) => ({
    path,
    content: withFrontMatter("", contentOf(path, own)),
  }));
  return { files, losses: [] };
}

function contentOf(path: string, blocks: readonly SpecBlock[]): string {
  switch (openspecDocumentOf(path)?.kind) {
    case "proposal":
      return `${blocks.map(({ content }) => content).join("\n\n")}\n`;
    case "tasks":
      return `${taskParts(blocks).join("\n")}\n`;
    default:
      return writeSegments(specSegments(blocks));
  }
}

function specSegments(blocks: readonly SpecBlock[]): WritableSegment[] {
  const segments: WritableSegment[] = [];
  let listed: string[] = [];
  for (const [index, block] of blocks.entries()) {
    const { metadata, title } = block;
    if (metadata.listed === true) {
      listed.push(block.content);
      const next = blocks[index + 1]?.metadata;
      if (next?.listed === true && next.delta === metadata.delta) continue;
      const heading = `${String(metadata.delta).toUpperCase()} Requirements`;
      segments.push({ ...toWritableSegment(block), title: heading, level: 2, body: listed.join("\n") });
      listed = [];
    } else {
      const isRequirement = metadata.requirement !== undefined;
      const segment = toWritableSegment(block);
      segments.push(isRequirement ? { ...segment, title: `Requirement: ${title}` } : segment);
    }
  }
  return segments;
}

function taskParts(blocks: readonly SpecBlock[]): string[] {
  const parts: string[] = [];
  let section: unknown;
  for (const { content, metadata } of blocks) {
    if (typeof metadata.section === "string" && metadata.section !== section) {
      parts.push(...(parts.length === 0 ? [] : [""]), headingLine(metadata.section, 2), "");
    }
    section = metadata.section;
    parts.push(toListItem(taskMarker(metadata.status), content), ...(content.includes("\n") ? [""] : []));
  }
  return parts;
}
