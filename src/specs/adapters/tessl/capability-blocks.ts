import type { SpecMetadata, SpecType } from "../../../protocol/spec-block.ts";
import type { DraftMention, SpecDraft } from "../../adapter.ts";
import { listItemEnd, listItemText, listMarker } from "../../markdown/list-item.ts";
import { lineKinds, lineText, type MarkdownScan, textOfLines } from "../../markdown/scan-markdown.ts";
import { withoutBlankEdges } from "../../markdown/sections.ts";
import { type Segment, type SegmentParent, segmentsOf } from "../../markdown/segments.ts";
import { blockTitle, joinSpace } from "../../model/block-title.ts";
import { classifyCriterion } from "../../model/ears.ts";
import { mentionsIn } from "../../model/mentions.ts";
import { slugOf } from "../../model/slug.ts";
import { type Annotation, isAnnotationLine, toMention } from "./annotations.ts";

/** A Tessl file, as far as it is read. */
export interface TesslFile {
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

/** The blocks of a Tessl file: a requirement per capability, a design for what else it says. */
export function capabilityBlocks(scan: MarkdownScan, file: TesslFile): SpecDraft[] {
  const parts = specParts(scan).map((part) => ({ part, annotations: annotationsOf(file.annotations, part) }));
  const isBare = (each: DescribedPart): boolean =>
    !each.part.isCapability && saysOnlyAnnotations(scan, each.part);
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

/** The first-level heading of what a file says first. */
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

function saysOnlyAnnotations(scan: MarkdownScan, part: SpecPart): boolean {
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
  // The kind in an annotation wins over the kind that a link or its place suggests.
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
 * The parts of a Tessl file, in order: third-level sections below `## Capabilities`, and otherwise
 * second-level sections, those of the template's own names apart. A file without either is one
 * capability.
 */
function specParts(scan: MarkdownScan): SpecPart[] {
  const segments = segmentsOf(scan, 3);
  const hasList = segments.some(
    ({ heading, says, hasChildren }) => isListTitle(heading) && (says || hasChildren),
  );
  const parts: SpecPart[] = [];
  for (let index = 0; index < segments.length; index += 1) {
    const segment = segments[index];
    if (segment === undefined) continue;
    const { heading, parents } = segment;
    const isInList = heading?.level === 3 && isListTitle(parents.at(-1));
    const isList = isListTitle(heading);
    let last = index;
    // Sections keep their subsections; only the list of capabilities is taken apart.
    if (heading?.level === 2 && !isList) while (segments[last + 1]?.heading?.level === 3) last += 1;
    const isSection = heading?.level === 2 && !isList && !hasList && !otherSections.test(heading.title);
    const part = toPart(scan, { segment, end: segments[last] ?? segment });
    index = last;
    // A heading of other headings says nothing; one that stands alone says what it says.
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
