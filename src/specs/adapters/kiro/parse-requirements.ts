import type { Diagnostic } from "../../../protocol/diagnostic.ts";
import type { ParsedSpecs, SpecDraft, SpecSource } from "../../adapter.ts";
import { type MarkdownScan, scanMarkdown, textOfLines } from "../../markdown/scan-markdown.ts";
import { withoutBlankEdges } from "../../markdown/sections.ts";
import { unclosedDiagnostics } from "../../markdown/unclosed-diagnostics.ts";
import { mentionsIn } from "../../mentions.ts";
import { slugOf } from "../../slug.ts";
import { criteriaOf } from "./criteria.ts";
import { duplicateNumber, nothingFound } from "./diagnostics.ts";
import { type KiroDocument, requirementId } from "./kiro-path.ts";
import { type RequirementSection, requirementSections } from "./requirement-sections.ts";
import { userStoryOf } from "./user-story.ts";

/** Reads a requirements.md: a block per requirement section. */
export function parseRequirements(source: SpecSource, document: KiroDocument): ParsedSpecs {
  const scan = scanMarkdown(source.text);
  const diagnostics = unclosedDiagnostics(scan, source.path);
  const seen = new Map<string, number>();
  const drafts = requirementSections(scan).map((section): SpecDraft => {
    const draft = toDraft(scan, section, document);
    const { line } = section.heading;
    const first = section.number === undefined ? undefined : seen.get(section.number);
    if (first !== undefined) {
      diagnostics.push(
        duplicateNumber(source.path, line, `Requirement ${section.number} is already in line ${first}.`),
      );
    } else if (section.number !== undefined) seen.set(section.number, line);
    if (draft.metadata.ears_patterns?.length === 0) diagnostics.push(noCriteria(source.path, section));
    return draft;
  });
  if (drafts.length === 0) diagnostics.push(...nothingFound(scan, source.path, "requirement"));
  return { drafts, diagnostics };
}

function toDraft(scan: MarkdownScan, section: RequirementSection, document: KiroDocument): SpecDraft {
  const { heading, number } = section;
  const lines = withoutBlankEdges(scan, section.from, section.to);
  const body = textOfLines(scan, lines.from, lines.to);
  const story = userStoryOf(scan, lines);
  return {
    id: {
      kind: "base",
      value:
        number === undefined
          ? `fw_a-${document.feature}-requirements-${slugOf(heading.title) || "requirement"}`
          : requirementId(document.feature, number),
    },
    framework: "fw_a",
    spec_type: "requirement",
    title: heading.title || `Requirement ${number ?? ""}`.trim(),
    content: body || heading.title,
    tags: ["fw_a", document.feature],
    lifecycle: "active",
    priority: "medium",
    metadata: {
      ...(number === undefined ? {} : { number }),
      ...(story === undefined ? {} : { user_story: story }),
      ...criteriaOf(scan, lines, number),
    },
    span: { start_line: heading.line, end_line: Math.max(heading.end_line, lines.to) },
    feature: document.folder,
    links: [],
    mentions: mentionsIn(scan, lines.from, lines.to),
  };
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
