import type { ParsedSpecs, SpecDraft, SpecSource } from "../../adapter.ts";
import { type MarkdownScan, scanMarkdown } from "../../markdown/scan-markdown.ts";
import { sectionsOf, withoutBlankEdges } from "../../markdown/sections.ts";
import { unclosedDiagnostics } from "../../markdown/unclosed-diagnostics.ts";
import { slugOf } from "../../model/slug.ts";
import type { KiroDocument } from "./kiro-path.ts";
import { requirementLabels, requirementLinks } from "./requirement-references.ts";
import { type SectionPart, sectionDraft } from "./section-draft.ts";

/** Reads a design.md: a block per second-level section; a document without one is a block itself. */
export function parseDesign(source: SpecSource, document: KiroDocument): ParsedSpecs {
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
