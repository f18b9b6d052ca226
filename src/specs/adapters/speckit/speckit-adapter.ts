import type { Diagnostic } from "../../../protocol/diagnostic.ts";
import type { SpecBlock, SpecMetadata } from "../../../protocol/spec-block.ts";
import type { ParsedSpecs, SpecAdapter, SpecDraft, SpecSource, WrittenSpecs } from "../../adapter.ts";
import {
  type MarkdownScan,
  scanMarkdown,
  structureWarning,
  unclosedDiagnostics,
} from "../../markdown/scan-markdown.ts";
import {
  headingLine,
  listMarker,
  type Segment,
  segmentsOf,
  toListItem,
  writeSegments,
} from "../../markdown/segments.ts";
import { renderFiles, toWritableSegment, withFrontMatter } from "../../model/assemble-blocks.ts";
import { slugOf } from "../../model/block-title.ts";
import { mentionsIn } from "../../model/mentions.ts";
import { taskMarker } from "../../model/task-list.ts";
import { specBlocks, speckitDocumentOf } from "./spec-blocks.ts";
import { taskBlocks } from "./task-blocks.ts";

/**
 * Spec Kit: `specs/<NNN-name>/{spec,plan,tasks}.md` at any depth, `.specify/memory/constitution.md`.
 *
 * - spec.md: each user story (its scenarios are its acceptance criteria), functional requirement and
 *   success criterion is a requirement.
 * - plan.md: each second-level section is a design.
 * - tasks.md: each checkbox with a task number is a task; it implements the user story and the
 *   requirements it names.
 * - constitution.md: each article is a constraint.
 */
export const speckitAdapter: SpecAdapter = {
  name: "speckit",
  framework: "fw_d",
  folders: [".specify"],
  matches: (path) => speckitDocumentOf(path) !== undefined,
  parse,
  write: writeSpeckit,
};

function parse({ path, text }: SpecSource): ParsedSpecs {
  const scan = scanMarkdown(text);
  const drafts = draftsOf(scan, path);
  return { drafts, diagnostics: [...unclosedDiagnostics(scan, path), ...repeatedNumbers(drafts, path)] };
}

/** Warnings about numbers that occur twice in a file: both blocks are kept, and links mean the first. */
function repeatedNumbers(drafts: readonly SpecDraft[], path: string): Diagnostic[] {
  const lines = new Map<unknown, number>();
  return drafts.flatMap(({ metadata, spec_type, span }): Diagnostic[] => {
    const number =
      metadata.requirement ?? metadata.task ?? (spec_type === "requirement" ? metadata.story : undefined);
    if (number === undefined) return [];
    const first = lines.get(number);
    if (first === undefined) lines.set(number, span.start_line);
    if (first === undefined) return [];
    const message = `${String(number)} is already in line ${first}.`;
    return [structureWarning({ path, line: span.start_line }, "number_duplicate", message)];
  });
}

function draftsOf(scan: MarkdownScan, path: string): readonly SpecDraft[] {
  const document = speckitDocumentOf(path);
  switch (document?.kind) {
    case "constitution":
      return constitutionBlocks(scan);
    case "spec":
      return specBlocks(scan, document);
    case "plan":
      return planBlocks(scan, document);
    case "tasks":
      return taskBlocks(scan, document);
    case undefined:
      return [];
  }
}

/** The second-level sections of plan.md; its whole text if it has no such section. */
function planBlocks(scan: MarkdownScan, document: { feature: string; folder: string }): SpecDraft[] {
  const segments = segmentsOf(scan, 2);
  const sections = segments.filter((segment) => segment.heading?.level === 2);
  return (sections.length > 0 ? sections : segments).filter(hasContent).map((segment) => ({
    ...toDraft(scan, segment, `fw_d-${document.feature}-plan`),
    spec_type: "design",
    tags: ["fw_d", document.feature, "plan"],
    feature: document.folder,
  }));
}

/** The articles of a constitution: its sections down to the third level. */
function constitutionBlocks(scan: MarkdownScan): SpecDraft[] {
  const version = /\*\*Version\*\*:[ \t]*([^\s|]+)/.exec(scan.text)?.[1];
  return segmentsOf(scan, 3)
    .filter(hasContent)
    .map((segment) => {
      const draft = toDraft(scan, segment, "fw_d-constitution");
      const metadata = { ...draft.metadata, ...(version !== undefined && { version }) };
      return { ...draft, metadata, spec_type: "constraint", tags: ["fw_d", "constitution"] };
    });
}

/** Whether a segment is a block: a heading above other headings without its own text is not. */
function hasContent(segment: Segment): boolean {
  return segment.hasContent || !segment.hasChildren;
}

function toDraft(
  scan: MarkdownScan,
  segment: Segment,
  idStem: string,
): Omit<SpecDraft, "spec_type" | "tags"> {
  const title = segment.heading?.title || "Introduction";
  const metadata: SpecMetadata = {
    level: segment.heading?.level ?? 0,
    ...(segment.parents.length > 0 && { parents: segment.parents }),
  };
  return {
    id: { kind: "base", value: `${idStem}-${slugOf(title) || "section"}` },
    framework: "fw_d",
    title,
    content: segment.hasContent ? segment.body : title,
    lifecycle: "active",
    priority: "medium",
    metadata,
    span: { start_line: segment.startLine, end_line: segment.endLine },
    links: [],
    mentions: mentionsIn(scan, segment.startLine, segment.endLine),
  };
}

/** Renders each file of the blocks after Spec Kit's templates, as far as blocks hold them. */
function writeSpeckit(blocks: readonly SpecBlock[]): WrittenSpecs {
  return renderFiles(blocks, contentOf);
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

/** The state of the writer of a spec.md: the open chapter and section, and the last story. */
interface SpecPlace {
  chapter: string;
  section: unknown;
  story: string | undefined;
}

function specParts(blocks: readonly SpecBlock[], folder: string): string[] {
  const place: SpecPlace = { chapter: "", section: undefined, story: undefined };
  const first = blocks[0]?.metadata;
  // Statements without a section come before all headings.
  const startsBare = first?.requirement !== undefined && first.section === undefined;
  const parts = startsBare ? [] : [headingLine(`Feature Specification: ${folder}`, 1)];
  let outer: SpecBlock | undefined;
  for (const block of blocks) {
    const isStory = block.metadata.requirement === undefined;
    // A block inside the text of the previous story or statement is written with that text.
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
    // An empty heading ends the story, and the statement is still below its section's title.
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

/** Whether a statement is part of the text of a block before it: by its lines, or else by its words. */
function isInside(block: SpecBlock, outer: SpecBlock): boolean {
  const [own, around] = [block.metadata.source, outer.metadata.source];
  if (own !== undefined && around !== undefined) return own.start_line <= around.end_line;
  const first = (/^[^\r\n]*/.exec(block.content)?.[0] ?? "").trim();
  return outer.content
    .split(/\r\n|\n|\r/)
    .some((line) => listMarker.test(line) && line.replace(listMarker, "").trim() === first);
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
