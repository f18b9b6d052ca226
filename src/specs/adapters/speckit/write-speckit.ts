import type { SpecBlock } from "../../../protocol/spec-block.ts";
import type { WrittenSpecs } from "../../adapter.ts";
import { blocksByPath } from "../../export/blocks-by-path.ts";
import { toWritableSegment, withFrontMatter } from "../../export/section-file.ts";
import { listMarker, toListItem } from "../../markdown/list-item.ts";
import { headingLine, writeSegments } from "../../markdown/write-segments.ts";
import { taskMarker } from "../../model/task-status.ts";
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
      return withFrontMatter("", writeSegments(blocks.map(toWritableSegment), { titleIsBody: true }));
  }
}

/** Where the writer of a spec.md stands: the open chapter and section, and the last story. */
interface SpecPlace {
  chapter: string;
  section: unknown;
  story: string | undefined;
}

function specParts(blocks: readonly SpecBlock[], folder: string): string[] {
  const place: SpecPlace = { chapter: "", section: undefined, story: undefined };
  const first = blocks[0]?.metadata;
  // Statements without a section stand before every heading.
  const startsBare = first?.requirement !== undefined && first.section === undefined;
  const parts = startsBare ? [] : [headingLine(`Feature Specification: ${folder}`, 1)];
  let outer: SpecBlock | undefined;
  for (const block of blocks) {
    const isStory = block.metadata.requirement === undefined;
    // What stands in the text of the story or statement before it is written with that one.
    if (!isStory && outer !== undefined && isInside(block, outer)) continue;
    parts.push(...(isStory ? storyParts(block, place) : statementParts(block, place)));
    outer = block;
  }
  return parts;
}

function storyParts({ title, content, metadata }: SpecBlock, place: SpecPlace): string[] {
  const level = typeof metadata.level === "number" ? metadata.level : 3;
  const chapter = level > 2 ? openChapter("User Scenarios & Testing", place) : [];
  if (level <= 2) place.chapter = "";
  place.section = title;
  place.story = title;
  return [...chapter, headingLine(title, level), ...(content === title ? [] : [content])];
}

function statementParts({ content, metadata }: SpecBlock, place: SpecPlace): string[] {
  const item = toListItem("-", content);
  const { section, requirement } = metadata;
  if (typeof section !== "string") return [item];
  if (section === place.story) {
    // A heading without words ends the story, and the statement still stands under its title.
    const end = place.section === section ? ["##"] : [];
    place.section = undefined;
    return [...end, item];
  }
  const parts = openChapter(
    String(requirement).startsWith("SC") ? "Success Criteria" : "Requirements",
    place,
  );
  if (section !== place.section) parts.push(headingLine(section, 3));
  place.section = section;
  return [...parts, item];
}

function openChapter(title: string, place: SpecPlace): string[] {
  if (place.chapter === title) return [];
  place.chapter = title;
  place.section = undefined;
  return [headingLine(title, 2)];
}

/** Whether a statement lies in the text of a block before it: by its lines, or else by its words. */
function isInside(block: SpecBlock, outer: SpecBlock): boolean {
  const [own, around] = [block.metadata.source, outer.metadata.source];
  if (own !== undefined && around !== undefined) return own.start_line <= around.end_line;
  const first = firstLineOf(block.content);
  return outer.content
    .split(/\r\n|\n|\r/)
    .some((line) => listMarker.test(line) && line.replace(listMarker, "").trim() === first);
}

function firstLineOf(content: string): string {
  return (/^[^\r\n]*/.exec(content)?.[0] ?? "").trim();
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
    parts.push(toListItem(taskMarker(status), content));
  }
  return parts;
}
