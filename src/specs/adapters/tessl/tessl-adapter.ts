import { matchesOf } from "../../../base/matches.ts";
import type { SpecBlock, SpecMetadata, SpecType } from "../../../protocol/spec-block.ts";
import type {
  DraftMention,
  ParsedSpecs,
  SpecAdapter,
  SpecDraft,
  SpecSource,
  WrittenSpecs,
} from "../../adapter.ts";
import { frontMatterDiagnostics, frontMatterText, readFrontMatter } from "../../markdown/front-matter.ts";
import {
  lineKinds,
  lineText,
  type MarkdownScan,
  scanMarkdown,
  textOfLines,
  unclosedDiagnostics,
} from "../../markdown/scan-markdown.ts";
import {
  listItemEnd,
  listItemText,
  listMarker,
  type Segment,
  type SegmentParent,
  segmentsOf,
  type WritableSegment,
  withoutBlankEdges,
  writeSegments,
} from "../../markdown/segments.ts";
import { renderFiles, toWritableSegment, withFrontMatter } from "../../model/assemble-blocks.ts";
import { blockTitle, joinSpace, slugOf } from "../../model/block-title.ts";
import { mentionsIn, toMentionPath } from "../../model/mentions.ts";
import { classifyCriterion } from "../../model/scenario.ts";

const sources = /\.spec\.md$|(?:^|\/)\.tessl\/(?:.*\/)?[^/]+\.md$/s;

/**
 * Tessl: `*.spec.md` and the Markdown files below `.tessl/`, versions 1 and 2.
 *
 * Each described capability is a requirement: a heading below `## Capabilities`, or a second-level section where there is none.
 * The targets of the file are code of all its capabilities; a test belongs to the capability that names it. Introduction, API and
 * other sections are designs.
 *
 * Browser tests and documentation use the same extension: a file without an annotation and without `targets` in its front matter
 * is not a file of Tessl and is skipped.
 */
export const tesslAdapter: SpecAdapter = {
  name: "tessl",
  framework: "fw_e",
  keys: { name: [], description: [], targets: [] },
  matches: (path) => path.endsWith(".md") && sources.test(path),
  parse,
  write: writeTessl,
};

function parse({ path, text }: SpecSource): ParsedSpecs {
  const scan = scanMarkdown(text);
  const { data, raw, problems } = readFrontMatter(scan);
  const targets = targetsOf(data.targets);
  const annotations = annotationsIn(scan, scan.bodyLine, scan.lineCount);
  const isTessl =
    targets.length > 0 || annotations.some(({ kind }) => kind !== "doc") || describesApi(scan, path);
  if (!isTessl) return { drafts: [], diagnostics: [] };
  const drafts = capabilityBlocks(scan, {
    path,
    targets,
    annotations,
    frontMatter: frontMatterText(raw),
    name: typeof data.name === "string" ? data.name.trim() : "",
  });
  return {
    drafts,
    diagnostics: [...frontMatterDiagnostics(path, problems), ...unclosedDiagnostics(scan, path)],
  };
}

function targetsOf(value: unknown): string[] {
  const list = Array.isArray(value) ? value : [value];
  return list.filter((item) => typeof item === "string").filter((item) => item.trim() !== "");
}

/** In Tessl's own folder a fence marked `{ .api }` is enough: specs of packages generate nothing. */
function describesApi(scan: MarkdownScan, path: string): boolean {
  if (!/(?:^|\/)\.tessl\//.test(path) || !scan.text.includes(".api")) return false;
  for (let line = scan.bodyLine; line <= scan.lineCount; line += 1) {
    if (/^[ \t]*(?:```|~~~)[^`]*\{[ \t]*\.api[ \t]*\}/.test(lineText(scan, line))) return true;
  }
  return false;
}

/** Renders each file of the blocks, with its front matter and its targets. */
function writeTessl(blocks: readonly SpecBlock[]): WrittenSpecs {
  return renderFiles(blocks, (_path, own) =>
    withFrontMatter(own[0]?.metadata.frontmatter, writeSegments(segmentsOfFile(own))),
  );
}

/** Writes the targets in a separate section after the introduction. */
function segmentsOfFile(blocks: readonly SpecBlock[]): WritableSegment[] {
  const segments = blocks.map((block) => ({ ...toWritableSegment(block), body: bodyOf(block) }));
  const annotations = blocks[0]?.metadata.annotations;
  if (!Array.isArray(annotations)) return segments;
  const at = segments.findIndex(({ level }) => level > 1);
  const next = segments[at];
  const above = next === undefined ? titleOf(segments) : next.parents.filter(({ level }) => level === 1);
  // Text directly below the title, or before it, must not end up below the targets.
  const level = next === undefined || next.level === 2 || next.parents.at(-1)?.level === 2 ? 2 : next.level;
  const target: WritableSegment = { title: "Target", level, parents: above, body: annotations.join("\n") };
  return at === -1 ? [...segments, target] : [...segments.slice(0, at), target, ...segments.slice(at)];
}

/** The body of a block; a capability whose content is its title has none. */
function bodyOf({ content, title, spec_type }: SpecBlock): string {
  const isBare = content === title && spec_type === "requirement" && !/^capabilities$/i.test(title);
  return isBare ? "" : content;
}

function titleOf(segments: readonly WritableSegment[]): WritableSegment["parents"] {
  const last = segments.findLast(({ level }) => level === 1);
  return last?.title === undefined ? [] : [{ level: 1, title: last.title }];
}

/** The parts of a Tessl file that are read. */
interface TesslFile {
  readonly path: string;
  /** The spec's name in the front matter; "" without one. */
  readonly name: string;
  /** Paths and globs in the front matter. */
  readonly targets: readonly string[];
  readonly annotations: readonly Annotation[];
  /** As spelled. */
  readonly frontMatter: string;
}

/** More targets of one file than these are not repeated on each of its blocks. */
const maxTargets = 50;

/** The blocks of a Tessl file: a requirement per capability, and a design per other section. */
function capabilityBlocks(scan: MarkdownScan, file: TesslFile): SpecDraft[] {
  const parts = specParts(scan).map((part) => ({ part, annotations: annotationsOf(file.annotations, part) }));
  const isBare = (each: DescribedPart): boolean =>
    !each.part.isCapability && hasOnlyAnnotations(scan, each.part);
  const described = parts.filter((each) => !isBare(each));
  const common = commonOf(file, parts, described[0]?.part);
  const [first, ...rest] = described.map((each) => toDraft(scan, each, common));
  if (first === undefined) return [];
  const annotations = parts.filter(isBare).flatMap((each) => each.annotations);
  const metadata = {
    ...(file.frontMatter !== "" && { frontmatter: file.frontMatter }),
    ...(annotations.length > 0 && {
      annotations: annotations.map(({ kind, target }) => `[@${kind}](${target})`),
    }),
    ...first.metadata,
  };
  return [{ ...first, metadata }, ...rest];
}

interface DescribedPart {
  readonly part: SpecPart;
  readonly annotations: readonly Annotation[];
}

/** The common fields of the blocks of a file. */
interface Common {
  readonly spec: string;
  readonly idStem: string;
  readonly path: string;
  readonly targets: readonly string[];
  readonly mentions: readonly DraftMention[];
}

function commonOf(file: TesslFile, parts: readonly DescribedPart[], first: SpecPart | undefined): Common {
  const fileName = file.path.slice(file.path.lastIndexOf("/") + 1).replace(/(?:\.spec)?\.md$/, "");
  const ofCapabilities = new Set(parts.flatMap((each) => (each.part.isCapability ? each.annotations : [])));
  const isTarget = ({ kind }: Annotation): boolean => kind === "generate" || kind === "describe";
  const shared = file.annotations.filter(
    (annotation) => isTarget(annotation) || (annotation.kind === "test" && !ofCapabilities.has(annotation)),
  );
  const targets = [...file.targets, ...shared.filter(isTarget).map(({ target }) => target)];
  const inFrontMatter = file.targets.map((target): Annotation => ({ kind: "generate", target, line: 1 }));
  const mentions = [...inFrontMatter, ...shared].map(toMention).filter((mention) => mention !== undefined);
  return {
    spec: titleAbove(first) || file.name || blockTitle(fileName) || "Spec",
    idStem: `fw_e-${slugOf(fileName) || "spec"}`,
    path: file.path,
    targets: [...new Set(targets)].slice(0, maxTargets),
    mentions: mentions.slice(0, maxTargets),
  };
}

/** The first-level heading above the first part of a file. */
function titleAbove(part: SpecPart | undefined): string {
  if (part?.level === 1) return part.title ?? "";
  return part?.parents.find(({ level }) => level === 1)?.title ?? "";
}

/** Annotations and parts are both in the order of the text. */
function annotationsOf(annotations: readonly Annotation[], part: SpecPart): Annotation[] {
  let low = 0;
  let high = annotations.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((annotations[middle]?.line ?? 0) < part.from) low = middle + 1;
    else high = middle;
  }
  let end = low;
  while ((annotations[end]?.line ?? part.to + 1) <= part.to) end += 1;
  return annotations.slice(low, end);
}

function hasOnlyAnnotations(scan: MarkdownScan, part: SpecPart): boolean {
  for (let line = part.bodyFrom; line <= part.to; line += 1) {
    const text = lineText(scan, line);
    if (text.trim() !== "" && !isAnnotationLine(text)) return false;
  }
  return true;
}

function toDraft(scan: MarkdownScan, described: DescribedPart, common: Common): SpecDraft {
  const { part, annotations } = described;
  const title = part.title ?? common.spec;
  const type: SpecType = part.isCapability ? "requirement" : "design";
  const metadata: SpecMetadata = {
    spec: common.spec,
    ...(common.targets.length > 0 && { targets: common.targets }),
    level: part.level,
    ...(part.parents.length > 0 && { parents: part.parents }),
    ...(part.isCapability && bulletCriteria(scan, part.bodyFrom, part.to)),
  };
  const mentions = new Map<string, DraftMention>();
  // The kind in an annotation overrides the kind that follows from a link or its place.
  const stated = [...annotations.map(toMention), ...(part.isCapability ? common.mentions : [])];
  for (const mention of [...stated, ...mentionsIn(scan, part.from, part.to)])
    if (mention !== undefined && !mentions.has(mention.path)) mentions.set(mention.path, mention);
  return {
    id: { kind: "base", value: `${common.idStem}-${slugOf(title) || "section"}` },
    framework: "fw_e",
    spec_type: type,
    title,
    content: part.body === "" ? title : part.body,
    tags: ["fw_e", slugOf(common.spec) || "spec", part.isCapability ? "capability" : "design"],
    lifecycle: "active",
    priority: "medium",
    metadata,
    span: { start_line: part.from, end_line: part.to },
    feature: common.path,
    links: [],
    mentions: [...mentions.values()],
  };
}

/** A part of a Tessl file, without overlap: a capability, or other text. */
interface SpecPart {
  readonly isCapability: boolean;
  /** Absent for text before the first heading. */
  readonly title?: string;
  readonly level: number;
  readonly parents: readonly SegmentParent[];
  readonly from: number;
  readonly bodyFrom: number;
  readonly to: number;
  readonly body: string;
}

const capabilities = /^capabilities$/i;
/** Sections of Tessl's template that describe no capability. */
const otherSections =
  /^(?:targets?|api|dependencies|overview|introduction|usage|installation|examples?|notes)$/i;

function isListTitle(heading: SegmentParent | undefined): boolean {
  return heading?.level === 2 && capabilities.test(heading.title);
}

/**
 * The parts of a Tessl file, in order: third-level sections below `## Capabilities`, and otherwise second-level sections, without
 * those that the template names. A file without either is one capability.
 */
function specParts(scan: MarkdownScan): SpecPart[] {
  const segments = segmentsOf(scan, 3);
  const hasList = segments.some(
    ({ heading, hasContent, hasChildren }) => isListTitle(heading) && (hasContent || hasChildren),
  );
  const parts: SpecPart[] = [];
  for (let index = 0; index < segments.length; index += 1) {
    const segment = segments[index];
    if (segment === undefined) continue;
    const { heading, parents } = segment;
    const isInList = heading?.level === 3 && isListTitle(parents.at(-1));
    const isList = isListTitle(heading);
    let last = index;
    // Sections keep their subsections; only the list of capabilities is split.
    if (heading?.level === 2 && !isList) while (segments[last + 1]?.heading?.level === 3) last += 1;
    const isSection = heading?.level === 2 && !isList && !hasList && !otherSections.test(heading.title);
    const part = toPart(scan, { segment, end: segments[last] ?? segment });
    index = last;
    // Skips an empty heading above other headings; an empty heading without children counts only in the list or as a section.
    if (part.body === "" && (segment.hasChildren || !(isInList || isSection))) continue;
    parts.push({ ...part, isCapability: isInList || isList || isSection });
  }
  return parts.some(({ level }) => level > 1)
    ? parts
    : parts.map((part) => ({ ...part, isCapability: true }));
}

function toPart(
  scan: MarkdownScan,
  lines: { segment: Segment; end: Segment },
): Omit<SpecPart, "isCapability"> {
  const { segment, end } = lines;
  const { heading, parents, startLine } = segment;
  const bodyStart = heading === undefined ? startLine : heading.end_line + 1;
  const { from, to } = withoutBlankEdges(scan, bodyStart, end.endLine);
  const body = textOfLines(scan, from, to);
  return {
    ...(heading !== undefined && { title: heading.title || "Untitled" }),
    level: heading?.level ?? 0,
    parents,
    from: startLine,
    bodyFrom: from,
    to: Math.max(to, heading?.end_line ?? to),
    body: body.trim() === "" ? "" : body,
  };
}

const annotationMark = /`?\[@\w+\](?:\([^()\s]{1,512}\)|[ \t]+[^\s`()[\]]{1,512})`?/g;

/** The outer list items of a capability: each states one behaviour, often with the test of it. */
function bulletCriteria(
  scan: MarkdownScan,
  from: number,
  to: number,
): Pick<SpecMetadata, "acceptance_criteria" | "ears_patterns"> {
  const found: { text: string; line: number }[] = [];
  for (let line = from; line <= to; line += 1) {
    if (scan.kinds[line - 1] !== lineKinds.prose || !listMarker.test(lineText(scan, line))) continue;
    const end = listItemEnd(scan, line, to);
    const item = listItemText(scan, line, end);
    const text = joinSpace(item.includes("[@") ? item.replace(annotationMark, "") : item);
    if (text !== "") found.push({ text, line });
    line = end;
  }
  if (found.length === 0) return {};
  const classified = found.map((item) => ({ item, ...classifyCriterion(item.text) }));
  return {
    acceptance_criteria: classified.map(({ pattern, trigger, response }) => ({ pattern, trigger, response })),
    ears_patterns: classified.map(({ item, pattern }, index) => ({
      pattern,
      ...item,
      number: String(index + 1),
    })),
  };
}

const annotationKinds = ["generate", "describe", "use", "test", "doc"] as const;
type AnnotationKind = (typeof annotationKinds)[number];

/** An annotation of Tessl's: `[@test](../a.test.ts)`, or `[@test] ../a.test.ts` in inline code. */
interface Annotation {
  readonly kind: AnnotationKind;
  /** As written: a path, a package name or a glob. */
  readonly target: string;
  readonly line: number;
}

const annotation =
  /\[@(generate|describe|use|test|doc)\](?:\(([^()\s]{1,512})\)|[ \t]{1,8}([^\s`()[\]]{1,512}))/g;

/** The annotations of a range of lines, in order. Headings, code fences and comments have no annotations. */
export function annotationsIn(scan: MarkdownScan, from: number, to: number): Annotation[] {
  const found: Annotation[] = [];
  // A text without the mark has no annotations; most files that are not Tessl's end here.
  if (!scan.text.includes("[@")) return found;
  const headingEnds = new Map(scan.headings.map((heading) => [heading.line, heading.end_line]));
  for (let line = from; line <= to; line += 1) {
    const headingEnd = headingEnds.get(line);
    if (headingEnd !== undefined) line = headingEnd;
    if (headingEnd !== undefined || scan.kinds[line - 1] !== lineKinds.prose) continue;
    for (const [, kind, linked, written] of matchesOf(annotation, lineText(scan, line)))
      found.push({ kind: kind as AnnotationKind, target: linked ?? written ?? "", line });
  }
  return found;
}

/** Whether a line holds annotations and nothing else. */
function isAnnotationLine(text: string): boolean {
  return text.includes("[@") && text.replace(annotation, "").replace(/[`\s*+-]/g, "") === "";
}

/** The file that an annotation names; packages and globs are not files. */
function toMention({ kind, target, line }: Annotation): DraftMention | undefined {
  const path = toMentionPath(target);
  if (path === undefined || kind === "doc") return undefined;
  return { path, line, role: kind === "test" ? "test" : "code" };
}
