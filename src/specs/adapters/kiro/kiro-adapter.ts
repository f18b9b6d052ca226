import type { ParsedSpecs, SpecAdapter, SpecDraft, SpecSource } from "../../adapter.ts";
import { unclosedDiagnostics } from "../../markdown/diagnostics.ts";
import { type MarkdownScan, scanMarkdown } from "../../markdown/scan-markdown.ts";
import { type Section, sectionsOf, withoutBlankEdges } from "../../markdown/sections.ts";
import { slugOf } from "../../model/slug.ts";
import { criteriaOfItems } from "./criteria.ts";
import { criterionItems } from "./criterion-items.ts";
import {
  type KiroDocument,
  kiroDocumentOf,
  nothingFound,
  requirementId,
  type SectionPart,
  sectionDraft,
} from "./kiro-document.ts";
import { parseRequirements } from "./parse-requirements.ts";
import { parseTasks } from "./parse-tasks.ts";
import { requirementLabels, requirementLinks } from "./requirement-references.ts";
import { writeKiro } from "./write-kiro.ts";

/** Kiro and cc-sdd: `.kiro/specs/<feature>/{requirements,bugfix,design,tasks}.md`. */
export const kiroAdapter: SpecAdapter = {
  name: "kiro",
  framework: "fw_a",
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
 * The three parts of a bug analysis, with the number that their statements have by Kiro's template.
 * The present behaviour is not an acceptance criterion; the expected and the unchanged behaviour are.
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
 * Reads a bugfix.md, which stands in for requirements.md: a block per behaviour (current, expected,
 * unchanged) with the ids of requirements, so that `_Requirements: 2.1_` of a task finds them.
 */
function parseBugfix(source: SpecSource, document: KiroDocument): ParsedSpecs {
  const scan = scanMarkdown(source.text);
  const drafts: SpecDraft[] = [];
  for (const section of sectionsOf(scan, (heading) => behaviorOf(heading.title) !== undefined)) {
    const behavior = behaviorOf(section.heading.title);
    // A heading inside of a behaviour is part of its text, whatever it says.
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
