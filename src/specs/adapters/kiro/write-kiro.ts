import type { SpecBlock } from "../../../protocol/spec-block.ts";
import type { WrittenSpecs } from "../../adapter.ts";
import { blocksByPath } from "../../export/blocks-by-path.ts";
import { scanMarkdown } from "../../markdown/scan-markdown.ts";
import { headingLine } from "../../markdown/write-segments.ts";
import { kiroDocumentOf } from "./kiro-document.ts";
import { isAcceptanceTitle, requirementNumber } from "./labels.ts";

/**
 * Renders each file of the blocks after Kiro's templates. The text around the blocks (introduction,
 * glossary) is not theirs, and so is not written.
 */
export function writeKiro(blocks: readonly SpecBlock[]): WrittenSpecs {
  const files = blocksByPath(blocks).map(({ path, blocks: own }) => ({
    path,
    content: contentOf(path, own),
  }));
  return { files, losses: [] };
}

function contentOf(path: string, blocks: readonly SpecBlock[]): string {
  switch (kiroDocumentOf(path)?.kind) {
    case "requirements":
      return sections(["# Requirements Document", "## Requirements"], blocks);
    case "bugfix":
      return sections(["# Bugfix Requirements Document", "## Bug Analysis"], blocks);
    case "tasks":
      return writeTasks(blocks);
    case "design":
      return writeDesign(blocks);
    case undefined:
      return "";
  }
}

/**
 * Requirements and constraints, below headings of one level: above all headings of their texts, so
 * that none of these ends a section, and alike, so that each ends the one before it.
 */
function sections(opening: readonly string[], blocks: readonly SpecBlock[]): string {
  const level = blocks.reduce((least, { content }) => Math.min(least, levelAbove(content)), 3);
  const hasShared = blocks.some(isSharedCriteria);
  // A heading without a number ends the block before it by its level.
  const parts = blocks.flatMap((block) => {
    const isOpen = requirementNumber(block.title) === undefined && block.metadata.behavior === undefined;
    const depth = !isOpen ? level : hasShared ? 1 : level - 1;
    return [headingLine(block.title, Math.max(1, depth)), ...bodyOf(block)];
  });
  // Criteria below a chapter's heading would be taken for those of the chapter.
  const chapters = hasShared ? [] : opening;
  return `${[...chapters, ...parts].join("\n\n")}\n`;
}

/** Criteria of no single requirement, which are a block below the heading that announces them. */
function isSharedCriteria({ title, metadata }: SpecBlock): boolean {
  return metadata.number === undefined && isAcceptanceTitle(title);
}

/** A design without sections is the only block of its document, and its title is the document's. */
function writeDesign(blocks: readonly SpecBlock[]): string {
  const [first] = blocks;
  const isWhole = blocks.length === 1 && first !== undefined && /-design(?:-\d+)?$/.test(first.id);
  const parts = isWhole
    ? [headingLine(first.title, 1), ...bodyOf(first)]
    : ["# Design Document", ...blocks.flatMap((block) => [headingLine(block.title, 2), ...bodyOf(block)])];
  return `${parts.join("\n\n")}\n`;
}

/** A section without text has its title for content. */
function bodyOf(block: SpecBlock): string[] {
  return block.content === block.title ? [] : [block.content];
}

/** The level above all headings of a text; 6 where it has none. */
function levelAbove(content: string): number {
  // The line break keeps a rule at the start from being read as front matter.
  const levels = scanMarkdown(`\n${content}`).headings.map(({ level }) => level - 1);
  return Math.max(
    1,
    levels.reduce((least, level) => Math.min(least, level), 6),
  );
}

/** Renders tasks as Kiro's checkbox list; a task lies below the one whose number its own begins with. */
function writeTasks(blocks: readonly SpecBlock[]): string {
  const parts = ["# Implementation Plan"];
  const open: string[] = [];
  for (const block of blocks) {
    const number = typeof block.metadata.number === "string" ? block.metadata.number : undefined;
    while (open.length > 0 && !number?.startsWith(`${open.at(-1)}.`)) open.pop();
    const item = taskItem(block, number);
    parts.push(indented(item, open.length * 2));
    if (number !== undefined) open.push(number);
  }
  return `${parts.join("\n\n")}\n`;
}

function taskItem({ title, content, metadata }: SpecBlock, number: string | undefined): string {
  const box = `- [${stateOf(metadata.status, metadata.state)}]${metadata.optional === true ? "*" : ""}`;
  const name = number === undefined || number.includes(".") ? number : `${number}.`;
  // A title that was cut is written as long as the content gives it.
  const [first = "", ...rest] = content.split("\n");
  const isCut = title.endsWith("…") && first.startsWith(title.slice(0, -1));
  const details = isCut ? rest.join("\n") : content;
  const words = [box, name, metadata.parallel === true ? "(P)" : undefined, isCut ? first : title];
  const line = words.filter((word) => word !== undefined).join(" ");
  return details === title || details === "" ? line : `${line}\n${indented(details, detailIndent(details))}`;
}

function stateOf(status: unknown, state: unknown): string {
  if (typeof state === "string" && /^[^[\]\s]$/u.test(state)) return state;
  return status === "done" ? "x" : status === "in_progress" ? "-" : " ";
}

/** Two columns, or four where that keeps a line from becoming a heading, a rule or an HTML block. */
function detailIndent(details: string): number {
  return /^ {0,3}(?:#{1,6}(?:\s|$)|[=-]+\s*$|<)/m.test(details) ? 4 : 2;
}

function indented(text: string, columns: number): string {
  const margin = " ".repeat(columns);
  return text
    .split("\n")
    .map((line) => (line === "" ? line : margin + line))
    .join("\n");
}
