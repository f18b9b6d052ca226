import type { SpecBlock } from "../../../protocol/spec-block.ts";
import type { WrittenSpecs } from "../../adapter.ts";
import { blocksByPath } from "../../export/blocks-by-path.ts";
import { toWritableSegment } from "../../export/section-file.ts";
import { toListItem } from "../../markdown/list-item.ts";
import { headingLine, writeSegments } from "../../markdown/write-segments.ts";
import { speckitDocumentOf } from "./speckit-path.ts";

/** Renders each file of the blocks after Spec Kit's templates, as far as blocks hold them. */
export function writeSpeckit(blocks: readonly SpecBlock[]): WrittenSpecs {
  const files = blocksByPath(blocks).map(({ path, blocks: own }) => ({
    path,
    content: contentOf(path, own),
  }));
  return { files, losses: [] };
}

function contentOf(path: string, blocks: readonly SpecBlock[]): string {
  const folder = path.split("/").at(-2) ?? "";
  switch (speckitDocumentOf(path)?.kind) {
    case "spec":
      return `${specParts(blocks, folder).join("\n\n")}\n`;
    case "tasks":
      return `${taskParts(blocks, folder).join("\n\n")}\n`;
    case "plan":
    case "constitution":
    case undefined:
      return writeSegments(blocks.map(toWritableSegment));
  }
}

function specParts(blocks: readonly SpecBlock[], folder: string): string[] {
  const parts: string[] = [];
  let chapter = "";
  let section: unknown;
  const openChapter = (title: string): void => {
    if (chapter !== title) parts.push(headingLine(title, 2));
    if (chapter !== title) section = undefined;
    chapter = title;
  };
  const stories = blocks.filter(({ metadata }) => metadata.requirement === undefined);
  for (const { title, content, metadata } of blocks) {
    if (metadata.requirement === undefined) {
      const level = typeof metadata.level === "number" ? metadata.level : 3;
      if (level > 2) openChapter("User Scenarios & Testing");
      section = title;
      parts.push(headingLine(title, level), ...(content === title ? [] : [content]));
      continue;
    }
    // A statement that stands in the text of a story is written with it.
    if (stories.some((story) => story.content.includes(content))) continue;
    if (typeof metadata.section === "string") {
      openChapter(String(metadata.requirement).startsWith("SC") ? "Success Criteria" : "Requirements");
      if (section !== metadata.section) parts.push(headingLine(metadata.section, 3));
      section = metadata.section;
    }
    parts.push(toListItem("-", content));
  }
  // Statements without a section stand before every heading.
  const startsBare =
    blocks[0]?.metadata.requirement !== undefined && blocks[0].metadata.section === undefined;
  return startsBare ? parts : [headingLine(`Feature Specification: ${folder}`, 1), ...parts];
}

function taskParts(blocks: readonly SpecBlock[], folder: string): string[] {
  const parts = [headingLine(`Tasks: ${folder}`, 1)];
  let open: { phase?: unknown; section?: unknown } = {};
  for (const { content, metadata } of blocks) {
    const { phase, section, status } = metadata;
    const isSamePhase = phase === open.phase && (section !== undefined || open.section === undefined);
    if (!isSamePhase) {
      if (typeof phase === "string") parts.push(headingLine(phase, 2));
      else parts.push(headingLine(`Tasks: ${folder}`, 1));
    }
    if (typeof section === "string" && (!isSamePhase || section !== open.section))
      parts.push(headingLine(section, 3));
    open = { phase, section };
    const box = status === "done" ? "- [x]" : status === "in_progress" ? "- [-]" : "- [ ]";
    parts.push(toListItem(box, content));
  }
  return parts;
}
