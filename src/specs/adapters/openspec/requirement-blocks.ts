import type { AcceptanceCriterion, EarsEntry, SpecMetadata } from "../../../protocol/spec-block.ts";
import type { DraftLink, SpecDraft } from "../../adapter.ts";
import { lineKinds, lineText, type MarkdownScan, textOfLines } from "../../markdown/scan-markdown.ts";
import { type Segment, segmentsOf } from "../../markdown/segments.ts";
import { joinSpace } from "../../model/block-title.ts";
import { classifyCriterion } from "../../model/ears.ts";
import { scenarioCriterion } from "../../model/scenario.ts";
import { slugOf } from "../../model/slug.ts";
import { type OpenspecDocument, requirementId, toDraft } from "./openspec-document.ts";
import { sectionBlock } from "./section-blocks.ts";

export type Delta = "added" | "modified" | "removed" | "renamed";

const requirementTitle = /^Requirement:\s*(.*)$/i;
const scenarioTitle = /^Scenario:\s*(.*)$/i;
const deltaTitle = /^(ADDED|MODIFIED|REMOVED|RENAMED)\s+Requirements$/i;
/** A requirement named in a list: `- FROM: ` and `- TO: ` below RENAMED, plain below REMOVED. */
const listedName = /^[ \t]*[-*+][ \t]+(?:(FROM|TO):[ \t]*)?`?#{3}[ \t]*Requirement:[ \t]*([^`]*)`?[ \t]*$/i;

/** The requirements of a spec or delta, and its other text section by section. */
export function requirementBlocks(scan: MarkdownScan, document: OpenspecDocument): SpecDraft[] {
  const scenarios = scenariosOf(scan);
  const drafts: SpecDraft[] = [];
  let delta: Delta | undefined;
  for (const segment of segmentsOf(scan, 3)) {
    const { heading } = segment;
    if (heading !== undefined && heading.level <= 2) delta = deltaOf(document, heading.title);
    const name = heading?.level === 3 ? requirementTitle.exec(heading.title)?.[1] : undefined;
    if (name !== undefined)
      drafts.push(requirementBlock(scan, document, { segment, name, delta, scenarios }));
    else if (heading?.level === 2 && (delta === "renamed" || delta === "removed") && segment.says)
      for (const listed of listedBlocks(scan, document, { segment, delta })) drafts.push(listed);
    else if (segment.says) drafts.push(sectionBlock(scan, document, segment));
  }
  return drafts;
}

function deltaOf(document: OpenspecDocument, title: string): Delta | undefined {
  const word = document.kind === "delta" ? deltaTitle.exec(title)?.[1]?.toLowerCase() : undefined;
  return word === undefined ? undefined : (word as Delta);
}

interface Scenario {
  readonly name: string;
  readonly line: number;
  readonly body: string;
}

/** The scenarios of a text, in order; each ends at the next heading of its level or above. */
function scenariosOf(scan: MarkdownScan): Scenario[] {
  const scenarios: Scenario[] = [];
  for (const [index, heading] of scan.headings.entries()) {
    const name = heading.level === 4 ? scenarioTitle.exec(heading.title)?.[1] : undefined;
    if (name === undefined) continue;
    let next = index + 1;
    while ((scan.headings[next]?.level ?? 0) > 4) next += 1;
    const end = (scan.headings[next]?.line ?? scan.lineCount + 1) - 1;
    scenarios.push({ name, line: heading.line, body: textOfLines(scan, heading.end_line + 1, end) });
  }
  return scenarios;
}

function requirementBlock(
  scan: MarkdownScan,
  document: OpenspecDocument,
  part: { segment: Segment; name: string; delta: Delta | undefined; scenarios: readonly Scenario[] },
): SpecDraft {
  const { segment, name, delta, scenarios } = part;
  const title = name || "Untitled";
  const own = scenarios.slice(
    lowerBound(scenarios, segment.startLine),
    lowerBound(scenarios, segment.endLine + 1),
  );
  return toDraft(scan, document, {
    id: `${document.idStem}-${slugOf(title) || "requirement"}`,
    spec_type: "requirement",
    title,
    content: segment.says ? segment.body : title,
    metadata: {
      requirement: title,
      ...(delta !== undefined && { delta }),
      level: 3,
      ...(segment.parents.length > 0 && { parents: segment.parents }),
      ...criteriaOf(own),
    },
    from: segment.startLine,
    to: segment.endLine,
    links: delta === undefined || delta === "added" ? [] : linksTo(document, title, segment.startLine),
  });
}

/** Index of the first scenario on or behind a line; scenarios are in line order. */
function lowerBound(scenarios: readonly Scenario[], line: number): number {
  let low = 0;
  let high = scenarios.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((scenarios[middle]?.line ?? 0) < line) low = middle + 1;
    else high = middle;
  }
  return low;
}

function criteriaOf(
  scenarios: readonly Scenario[],
): Pick<SpecMetadata, "acceptance_criteria" | "ears_patterns"> {
  if (scenarios.length === 0) return {};
  const criteria: AcceptanceCriterion[] = [];
  const entries: EarsEntry[] = [];
  for (const [index, { name, line, body }] of scenarios.entries()) {
    const words = joinSpace(body);
    const { pattern, trigger, response } = scenarioCriterion(body) ?? classifyCriterion(words || name);
    criteria.push({ pattern, trigger, response });
    const text = words === "" ? name : `${name}: ${words}`;
    entries.push({ pattern: pattern as EarsEntry["pattern"], text, line, number: String(index + 1) });
  }
  return { acceptance_criteria: criteria, ears_patterns: entries };
}

/** Requirements that a RENAMED or REMOVED section only names; whatever else it says stays a section. */
function listedBlocks(
  scan: MarkdownScan,
  document: OpenspecDocument,
  part: { segment: Segment; delta: "renamed" | "removed" },
): SpecDraft[] {
  const { segment, delta } = part;
  const drafts: SpecDraft[] = [];
  let from: { name: string; line: number } | undefined;
  for (let line = segment.bodyStart; line <= segment.bodyEnd; line += 1) {
    const match = scan.kinds[line - 1] === lineKinds.prose ? listedName.exec(lineText(scan, line)) : null;
    const [, role, written = ""] = match ?? [];
    const name = written.trim();
    if (match === null || name === "") continue;
    if (role?.toUpperCase() === "FROM") from = { name, line };
    else if (role === undefined || from !== undefined) {
      const start = from?.line ?? line;
      drafts.push(
        toDraft(scan, document, {
          id: `${document.idStem}-${slugOf(name) || "requirement"}`,
          spec_type: "requirement",
          title: name,
          content: textOfLines(scan, start, line),
          metadata: {
            requirement: name,
            delta,
            listed: true,
            ...(from !== undefined && { renamed_from: from.name }),
            ...(segment.parents.length > 0 && { parents: segment.parents }),
          },
          from: start,
          to: line,
          links: linksTo(document, from?.name ?? name, start),
        }),
      );
      from = undefined;
    }
  }
  return drafts.length > 0 ? drafts : [sectionBlock(scan, document, segment)];
}

/** An archived change has been merged, so what it names may be gone. */
function linksTo(document: OpenspecDocument, name: string, line: number): DraftLink[] {
  if (document.archived || document.capability === undefined) return [];
  return [{ kind: "related", target: requirementId(document.capability, name), line }];
}
