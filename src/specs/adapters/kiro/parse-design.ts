import type { ParsedSpecs, SpecDraft, SpecSource } from "../../adapter.ts";
import { type MarkdownScan, scanMarkdown, textOfLines } from "../../markdown/scan-markdown.ts";
import { sectionsOf, withoutBlankEdges } from "../../markdown/sections.ts";
import { unclosedDiagnostics } from "../../markdown/unclosed-diagnostics.ts";
import { mentionsIn } from "../../mentions.ts";
import { slugOf } from "../../slug.ts";
import type { LineRange } from "../../task-list.ts";
import type { KiroDocument } from "./kiro-path.ts";
import { requirementLinks } from "./requirement-references.ts";

/** Reads a design.md: a block per second-level section; a document without one is a block itself. */
export function parseDesign(source: SpecSource, document: KiroDocument): ParsedSpecs {
  const scan = scanMarkdown(source.text);
  const diagnostics = unclosedDiagnostics(scan, source.path);
  const sections = sectionsOf(scan, (heading) => heading.level === 2);
  const drafts = sections.map(({ heading, bodyLine, endLine }) =>
    toDraft(scan, document, {
      id: `fw_a-${document.feature}-design-${slugOf(heading.title) || "section"}`,
      title: heading.title || "Design",
      line: heading.line,
      body: withoutBlankEdges(scan, bodyLine, endLine),
    }),
  );
  if (drafts.length === 0 && source.text.trim() !== "") drafts.push(wholeDesign(scan, document));
  return { drafts, diagnostics };
}

interface DesignPart {
  readonly id: string;
  readonly title: string;
  readonly line: number;
  readonly body: LineRange;
}

function wholeDesign(scan: MarkdownScan, document: KiroDocument): SpecDraft {
  const first = scan.headings[0];
  const body = withoutBlankEdges(
    scan,
    first?.level === 1 ? first.end_line + 1 : scan.bodyLine,
    scan.lineCount,
  );
  const id = `fw_a-${document.feature}-design`;
  return toDraft(scan, document, {
    id,
    title: first?.title || "Design",
    line: first?.line ?? body.from,
    body,
  });
}

function toDraft(scan: MarkdownScan, document: KiroDocument, part: DesignPart): SpecDraft {
  return {
    id: { kind: "base", value: part.id },
    framework: "fw_a",
    spec_type: "design",
    title: part.title,
    content: textOfLines(scan, part.body.from, part.body.to) || part.title,
    tags: ["fw_a", document.feature],
    lifecycle: "active",
    priority: "medium",
    metadata: {},
    span: { start_line: part.line, end_line: Math.max(part.line, part.body.to) },
    feature: document.folder,
    links: requirementLinks(scan, [part.body], document.feature),
    mentions: mentionsIn(scan, part.body.from, part.body.to),
  };
}
