import type { SpecMetadata, SpecType } from "../../../protocol/spec-block.ts";
import type { DraftMention, SpecDraft } from "../../adapter.ts";
import { lineText, type MarkdownScan } from "../../markdown/scan-markdown.ts";
import { blockTitle } from "../../model/block-title.ts";
import { mentionsIn } from "../../model/mentions.ts";
import { slugOf } from "../../model/slug.ts";
import { type Annotation, isAnnotationLine, toMention } from "./annotations.ts";
import { bulletCriteria } from "./bullet-criteria.ts";
import { type SpecPart, specParts } from "./spec-parts.ts";

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

/** What all blocks of a file share. */
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
  // What an annotation says about a path goes before what its link or its place suggests.
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
