import type { Diagnostic } from "../../../protocol/diagnostic.ts";
import type { SpecType } from "../../../protocol/spec-block.ts";
import type { ParsedSpecs, SpecDraft, SpecSource } from "../../adapter.ts";
import { type MarkdownScan, scanMarkdown } from "../../markdown/scan-markdown.ts";
import { withoutBlankEdges } from "../../markdown/sections.ts";
import { unclosedDiagnostics } from "../../markdown/unclosed-diagnostics.ts";
import { slugOf } from "../../model/slug.ts";
import { otherSections } from "./constraint-sections.ts";
import { criteriaOf } from "./criteria.ts";
import { duplicateNumber, nothingFound } from "./diagnostics.ts";
import { type KiroDocument, requirementId, requirementTarget } from "./kiro-path.ts";
import { type RequirementSection, requirementSections } from "./requirement-sections.ts";
import { sectionDraft } from "./section-draft.ts";
import { statementAliases } from "./statement-codes.ts";
import { userStoryOf } from "./user-story.ts";

/**
 * Reads a requirements.md: a block per requirement section, and one per section of non-functional
 * requirements or constraints outside of them.
 */
export function parseRequirements(source: SpecSource, document: KiroDocument): ParsedSpecs {
  const scan = scanMarkdown(source.text);
  const found = requirementSections(scan);
  const requirements = found.sections.filter(({ kind }) => kind === "requirement");
  const sections = [...found.sections, ...otherSections(scan, found)];
  // What stands beside requirements limits all of them; without any, it is what is required.
  const typeOf = ({ kind }: RequirementSection): SpecType =>
    kind === "constraint" || (kind !== "requirement" && requirements.length > 0)
      ? "constraint"
      : "requirement";
  const drafts = sections.map((section) => toDraft(scan, { section, type: typeOf(section) }, document));
  const diagnostics = [
    ...unclosedDiagnostics(scan, source.path),
    ...numberProblems(source.path, requirements),
    ...drafts.filter(isEmptyRequirement).map((draft) => noCriteria(source.path, draft)),
  ];
  if (sections.every(({ kind }) => kind === "constraint"))
    diagnostics.push(...nothingFound(scan, source.path, "requirement"));
  return { drafts: drafts.sort((one, other) => one.span.start_line - other.span.start_line), diagnostics };
}

function toDraft(
  scan: MarkdownScan,
  { section, type }: { readonly section: RequirementSection; readonly type: SpecType },
  document: KiroDocument,
): SpecDraft {
  const { heading, number, kind } = section;
  const lines = withoutBlankEdges(scan, section.from, section.to);
  const story = kind === "requirement" ? userStoryOf(scan, lines) : undefined;
  const id =
    number === undefined ? sectionId(document, heading.title) : requirementId(document.feature, number);
  const criteria = criteriaOf(scan, section, lines);
  const all = type === "requirement" ? [requirementTarget(document.feature, "*")] : [];
  return {
    ...sectionDraft(scan, { heading, lines, id }, document),
    spec_type: type,
    metadata: {
      ...(number === undefined ? {} : { number }),
      ...(story === undefined ? {} : { user_story: story }),
      ...(type === "requirement" || criteria.ears_patterns.length > 0 ? criteria : {}),
    },
    aliases: [...statementAliases(scan, section, document), ...all],
  };
}

function isEmptyRequirement({ spec_type, metadata }: SpecDraft): boolean {
  return spec_type === "requirement" && metadata.ears_patterns?.length === 0;
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

function noCriteria(path: string, { title, span }: SpecDraft): Diagnostic {
  return {
    severity: "warning",
    rule: "structure",
    code: "requirement_without_criteria",
    message: `"${title}" has no acceptance criteria.`,
    path,
    line: span.start_line,
  };
}
