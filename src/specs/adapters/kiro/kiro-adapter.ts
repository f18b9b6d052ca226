import type { SpecBlock } from "../../../protocol/spec-block.ts";
import type { ParsedSpecs, SpecAdapter, SpecDraft, SpecSource, WrittenSpecs } from "../../adapter.ts";
import { type MarkdownScan, scanMarkdown, unclosedDiagnostics } from "../../markdown/scan-markdown.ts";
import { headingLine, type Section, sectionsOf, withoutBlankEdges } from "../../markdown/segments.ts";
import { renderFiles } from "../../model/assemble-blocks.ts";
import { slugOf } from "../../model/block-title.ts";
import { criteriaOfItems, criterionItems } from "./criteria.ts";
import {
  type KiroDocument,
  kiroDocumentOf,
  nothingFound,
  requirementId,
  requirementLabels,
  requirementLinks,
  type SectionPart,
  sectionDraft,
} from "./kiro-document.ts";
import { parseRequirements } from "./parse-requirements.ts";
import { parseTasks } from "./parse-tasks.ts";
import { isAcceptanceTitle, requirementNumber } from "./requirement-sections.ts";

/** Kiro and cc-sdd: `.kiro/specs/<feature>/{requirements,bugfix,design,tasks}.md`. */
export const kiroAdapter: SpecAdapter = {
  name: "kiro",
  framework: "fw_a",
  folders: [".kiro/specs"],
  matches: (path) => kiroDocumentOf(path) !== undefined,
  parse,
  write: writeKiro,
};

function parse(source: SpecSource): ParsedSpecs {
  const document = kiroDocumentOf(source.path);
  if (document === undefined) return { drafts: [], diagnostics: [] };
  switch (document.kind) {
    case "requirements":
      return parseRequirements(source, document);
    case "bugfix":
      return parseBugfix(source, document);
    case "design":
      return parseDesign(source, document);
    case "tasks":
      return parseTasks(source, document);
  }
}

/** Reads a design.md: a block per second-level section; a document without one is a block itself. */
function parseDesign(source: SpecSource, document: KiroDocument): ParsedSpecs {
  const scan = scanMarkdown(source.text);
  const parts = sectionsOf(scan, (heading) => heading.level === 2).map(
    ({ heading, bodyLine, endLine }): SectionPart => ({
      id: `fw_a-${document.feature}-design-${slugOf(heading.title) || "section"}`,
      heading,
      lines: withoutBlankEdges(scan, bodyLine, endLine),
    }),
  );
  if (parts.length === 0 && source.text.trim() !== "") parts.push(wholeDesign(scan, document));
  return {
    drafts: parts.map((part) => toDesign(scan, part, document)),
    diagnostics: unclosedDiagnostics(scan, source.path),
  };
}

function wholeDesign(scan: MarkdownScan, document: KiroDocument): SectionPart {
  const first = scan.headings[0];
  const from = first?.level === 1 ? first.end_line + 1 : scan.bodyLine;
  const lines = withoutBlankEdges(scan, from, scan.lineCount);
  const heading = { title: first?.title || "Design", line: first?.line ?? lines.from };
  return { id: `fw_a-${document.feature}-design`, heading: { ...heading, end_line: heading.line }, lines };
}

function toDesign(scan: MarkdownScan, part: SectionPart, document: KiroDocument): SpecDraft {
  return {
    ...sectionDraft(scan, part, document),
    spec_type: "design",
    metadata: {},
    links: requirementLinks(requirementLabels(scan, [part.lines]), document.feature),
  };
}

/**
 * The three parts of a bug analysis, with the number that their statements have by Kiro's template. The current behaviour is not
 * an acceptance criterion; the expected and the unchanged behaviour are.
 */
const behaviors = [
  { name: "current", number: "1", title: /\b(?:current|actual|defective|buggy)\b.*\bbehaviou?r/i },
  { name: "expected", number: "2", title: /\b(?:expected|correct|desired)\b.*\bbehaviou?r/i },
  {
    name: "unchanged",
    number: "3",
    title: /\b(?:unchanged|preserved)\b.*\bbehaviou?r|regression prevention/i,
  },
] as const;

type Behavior = (typeof behaviors)[number];

/**
 * Reads a bugfix.md, which replaces requirements.md: a block per behaviour (current, expected, unchanged) with the ids of
 * requirements, so that `_Requirements: 2.1_` of a task finds them.
 */
function parseBugfix(source: SpecSource, document: KiroDocument): ParsedSpecs {
  const scan = scanMarkdown(source.text);
  const drafts: SpecDraft[] = [];
  for (const section of sectionsOf(scan, (heading) => behaviorOf(heading.title) !== undefined)) {
    const behavior = behaviorOf(section.heading.title);
    // A heading inside a behaviour is always part of its text.
    const isInside = section.heading.line <= (drafts.at(-1)?.span.end_line ?? 0);
    if (behavior !== undefined && !isInside) drafts.push(toDraft(scan, { section, behavior }, document));
  }
  if (drafts.length > 0) return { drafts, diagnostics: unclosedDiagnostics(scan, source.path) };
  const requirements = parseRequirements(source, document);
  if (requirements.drafts.length > 0) return requirements;
  return {
    drafts,
    diagnostics: [...unclosedDiagnostics(scan, source.path), ...nothingFound(scan, source.path, "behaviour")],
  };
}

function behaviorOf(title: string): Behavior | undefined {
  return behaviors.find((behavior) => behavior.title.test(title));
}

function toDraft(
  scan: MarkdownScan,
  part: { readonly section: Section; readonly behavior: Behavior },
  document: KiroDocument,
): SpecDraft {
  const { heading, bodyLine, endLine } = part.section;
  const { name } = part.behavior;
  const lines = withoutBlankEdges(scan, bodyLine, endLine);
  const { labelled, others } = criterionItems(scan, lines);
  const items = labelled ?? others;
  const number =
    items.find((item) => item.number?.includes("."))?.number?.split(".")[0] ?? part.behavior.number;
  return {
    ...sectionDraft(scan, { id: requirementId(document.feature, number), heading, lines }, document),
    spec_type: "requirement",
    tags: ["fw_a", document.feature, "bugfix"],
    metadata: { number, behavior: name, ...criteriaOfItems(name === "current" ? [] : items, number) },
  };
}

/**
 * Renders each file of the blocks after Kiro's templates. Does not write text outside the blocks, such as an introduction or a
 * glossary.
 */
function writeKiro(blocks: readonly SpecBlock[]): WrittenSpecs {
  return renderFiles(blocks, contentOf);
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
 * Renders requirements and constraints below headings of one level, which is above all headings in their texts: a heading in a
 * text then ends no section, and each section ends the one before it.
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

/** Whether a block is a chapter of criteria that belong to no single requirement. */
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

/** The content of a section without text is its title. */
function bodyOf(block: SpecBlock): string[] {
  return block.content === block.title ? [] : [block.content];
}

/** The level above all headings of a text; 6 for a text without headings. */
function levelAbove(content: string): number {
  // The line break keeps a rule at the start from being read as front matter.
  const levels = scanMarkdown(`\n${content}`).headings.map(({ level }) => level - 1);
  return Math.max(
    1,
    levels.reduce((least, level) => Math.min(least, level), 6),
  );
}

/** Renders tasks as Kiro's checkbox list. Task 1.2 is nested below task 1. */
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
  // A shortened title is written in full, from the content.
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
