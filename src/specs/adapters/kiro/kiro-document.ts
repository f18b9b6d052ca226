import type { Diagnostic } from "../../../protocol/diagnostic.ts";
import type { SpecDraft } from "../../adapter.ts";
import { type MarkdownScan, textOfLines } from "../../markdown/scan-markdown.ts";
import { mentionsIn } from "../../model/mentions.ts";
import { slugOf } from "../../model/slug.ts";
import type { LineRange } from "../../model/task-list.ts";

/** Two blocks of a document have the same number: both are kept, and links mean the first. */
export function duplicateNumber(path: string, line: number, message: string): Diagnostic {
  return { severity: "warning", rule: "structure", code: "number_duplicate", message, path, line };
}

/** A document that says something, and nothing of it is what such a document is for. */
export function nothingFound(scan: MarkdownScan, path: string, what: string): Diagnostic[] {
  if (scan.text.trim() === "") return [];
  return [
    {
      severity: "warning",
      rule: "structure",
      code: `no_${what}`,
      message: `No ${what} was found in this file.`,
      path,
      line: 1,
    },
  ];
}

/** A section that becomes a block. `lines` is its body without blank lines at the edges. */
export interface SectionPart {
  readonly id: string;
  readonly heading: { readonly title: string; readonly line: number; readonly end_line: number };
  readonly lines: LineRange;
}

/** The common fields of blocks from sections. The content of a section without text is its title. */
export function sectionDraft(
  scan: MarkdownScan,
  { id, heading, lines }: SectionPart,
  document: KiroDocument,
): Omit<SpecDraft, "spec_type" | "metadata"> {
  const title = heading.title || "Untitled";
  return {
    id: { kind: "base", value: id },
    framework: "fw_a",
    title,
    content: textOfLines(scan, lines.from, lines.to) || title,
    tags: ["fw_a", document.feature],
    lifecycle: "active",
    priority: "medium",
    span: { start_line: heading.line, end_line: Math.max(heading.end_line, lines.to) },
    feature: document.folder,
    links: [],
    mentions: mentionsIn(scan, lines.from, lines.to),
  };
}

type KiroDocumentKind = "requirements" | "bugfix" | "design" | "tasks";

/** The facts in the path of a Kiro document. */
export interface KiroDocument {
  readonly kind: KiroDocumentKind;
  /** The folder that the documents of a feature share, project-relative. */
  readonly folder: string;
  /** The feature as ids spell it; nested folders are joined by hyphens. */
  readonly feature: string;
}

const kiroPath = /(?:^|\/)\.kiro\/specs\/(?:(.*)\/)?(requirements|bugfix|design|tasks)\.md$/s;

/** The document at a path; undefined where the path is not one of Kiro's. */
export function kiroDocumentOf(path: string): KiroDocument | undefined {
  const match = path.endsWith(".md") ? kiroPath.exec(path) : null;
  if (match === null) return undefined;
  return {
    kind: match[2] as KiroDocumentKind,
    folder: path.slice(0, path.lastIndexOf("/")),
    feature: slugOf(match[1] ?? "") || "project",
  };
}

/** The base id of the requirement with a number, in requirements.md or bugfix.md of a feature. */
export function requirementId(feature: string, number: string): string {
  return requirementTarget(feature, `req${number}`);
}

/** The target of a link to a requirement, to a statement with a code ("nfr-1") or to all ("*"). */
export function requirementTarget(feature: string, end: string): string {
  return `fw_a-${feature}-requirements-${end}`;
}
