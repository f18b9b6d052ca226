import type { Diagnostic } from "../../../protocol/diagnostic.ts";
import type { ParsedSpecs, SpecDraft, SpecSource } from "../../adapter.ts";
import { type MarkdownScan, scanMarkdown } from "../../markdown/scan-markdown.ts";
import { withoutBlankEdges } from "../../markdown/sections.ts";
import { unclosedDiagnostics } from "../../markdown/unclosed-diagnostics.ts";
import { slugOf } from "../../slug.ts";
import { constraintSections } from "./constraint-sections.ts";
import { criteriaOf } from "./criteria.ts";
import { duplicateNumber, nothingFound } from "./diagnostics.ts";
import { type KiroDocument, requirementId } from "./kiro-path.ts";
import { type RequirementSection, requirementSections } from "./requirement-sections.ts";
import { sectionDraft } from "./section-draft.ts";
import { userStoryOf } from "./user-story.ts";

/**
 * Reads a requirements.md: a block per requirement section, and one per section of non-functional
 * requirements or constraints outside of them.
 */
export function parseRequirements(source: SpecSource, document: KiroDocument): ParsedSpecs {
  const scan = scanMarkdown(source.text);
  const sections = requirementSections(scan);
  const requirements = sections.map((section) => toRequirement(scan, section, document));
  const constraints = constraintSections(scan, sections).map((section) =>
    toConstraint(scan, section, document),
  );
  const diagnostics = [...unclosedDiagnostics(scan, source.path), ...numberProblems(source.path, sections)];
  for (const [index, section] of sections.entries()) {
    const criteria = requirements[index]?.metadata.ears_patterns ?? [];
    if (criteria.length === 0) diagnostics.push(noCriteria(source.path, section));
  }
  if (sections.length === 0) diagnostics.push(...nothingFound(scan, source.path, "requirement"));
  const drafts = [...requirements, ...constraints];
  return { drafts: drafts.sort((one, other) => one.span.start_line - other.span.start_line), diagnostics };
}

function toRequirement(scan: MarkdownScan, section: RequirementSection, document: KiroDocument): SpecDraft {
  const { heading, number } = section;
  const lines = withoutBlankEdges(scan, section.from, section.to);
  const story = userStoryOf(scan, lines);
  const id =
    number === undefined ? sectionId(document, heading.title) : requirementId(document.feature, number);
  return {
    ...sectionDraft(scan, { heading, lines, id }, document),
    spec_type: "requirement",
    metadata: {
      ...(number === undefined ? {} : { number }),
      ...(story === undefined ? {} : { user_story: story }),
      ...criteriaOf(scan, section, lines),
    },
  };
}

function toConstraint(scan: MarkdownScan, section: RequirementSection, document: KiroDocument): SpecDraft {
  const { heading } = section;
  const lines = withoutBlankEdges(scan, section.from, section.to);
  const part = { heading, lines, id: sectionId(document, heading.title) };
  return { ...sectionDraft(scan, part, document), spec_type: "constraint", metadata: {} };
}

function sectionId(document: KiroDocument, title: string): string {
  return `fw_a-${document.feature}-requirements-${slugOf(title) || "requirement"}`;
}

function numberProblems(path: string, sections: readonly RequirementSection[]): Diagnostic[] {
  const seen = new Map<string, number>();
  return sections.flatMap(({ heading, number }): Diagnostic[] => {
    if (number === undefined) return [];
    const first = seen.get(number);
    if (first === undefined) seen.set(number, heading.line);
    if (first === undefined) return [];
    return [duplicateNumber(path, heading.line, `Requirement ${number} is already in line ${first}.`)];
  });
}

function noCriteria(path: string, { heading }: RequirementSection): Diagnostic {
  return {
    severity: "warning",
    rule: "structure",
    code: "requirement_without_criteria",
    message: `"${heading.title}" has no acceptance criteria.`,
    path,
    line: heading.line,
  };
}
