import type { Diagnostic } from "../../../protocol/diagnostic.ts";
import type {
  AcceptanceCriterion,
  EarsEntry,
  SpecBlock,
  SpecMetadata,
} from "../../../protocol/spec-block.ts";
import type {
  DraftLink,
  ParsedSpecs,
  SpecAdapter,
  SpecDraft,
  SpecSource,
  WrittenSpecs,
} from "../../adapter.ts";
import {
  lineKinds,
  lineText,
  type MarkdownScan,
  scanMarkdown,
  structureWarning,
  textOfLines,
  unclosedDiagnostics,
} from "../../markdown/scan-markdown.ts";
import {
  headingLine,
  type Segment,
  segmentsOf,
  toListItem,
  type WritableSegment,
  withoutBlankEdges,
  writeSegments,
} from "../../markdown/segments.ts";
import { renderFiles, toWritableSegment, withFrontMatter } from "../../model/assemble-blocks.ts";
import { blockTitle, joinSpace, slugOf } from "../../model/block-title.ts";
import { classifyCriterion, scenarioCriterion } from "../../model/scenario.ts";
import { detailText, taskItemsIn, taskMarker, taskStatusOf } from "../../model/task-list.ts";
import { type OpenspecDocument, openspecDocumentOf, requirementId, toDraft } from "./openspec-document.ts";

/**
 * OpenSpec: `openspec/specs/<capability>/{spec,design}.md`, `openspec/project.md`, and the specs, proposal, design and tasks of
 * `openspec/changes/<change>`, below any folder. Its blocks are of the framework `custom` with `metadata.tool: "openspec"`.
 *
 * - Each `### Requirement:` is a requirement with its scenarios as criteria; other text of a spec is a block per section.
 * - In a change, `metadata.delta` is the kind of change: added, modified, removed or renamed. Requirements of all kinds but
 *   "added" link to the requirement they change; removed ones are deprecated.
 * - An archived change is obsolete: it has been merged into the specs.
 */
export const openspecAdapter: SpecAdapter = {
  name: "openspec",
  framework: "custom",
  label: "OpenSpec",
  folders: ["openspec"],
  matches: (path) => openspecDocumentOf(path) !== undefined,
  parse,
  write: writeOpenspec,
};

function parse({ path, text }: SpecSource): ParsedSpecs {
  const scan = scanMarkdown(text);
  const drafts = draftsOf(scan, path);
  return {
    drafts,
    diagnostics: [
      ...unclosedDiagnostics(scan, path),
      ...missingSections(scan, path),
      ...missingScenarios(drafts, path),
    ],
  };
}

/** The sections without which OpenSpec refuses a current spec. */
function missingSections(scan: MarkdownScan, path: string): Diagnostic[] {
  if (openspecDocumentOf(path)?.kind !== "spec" || scan.text.trim() === "") return [];
  const sections = segmentsOf(scan, 2);
  const has = (name: string): boolean =>
    sections.some(
      ({ heading, hasContent }) => hasContent && heading?.title.trim().toLowerCase() === name.toLowerCase(),
    );
  const missing = ["Purpose", "Requirements"].filter((name) => !has(name));
  return missing.map((name) =>
    structureWarning(
      { path, line: 1 },
      "section_missing",
      `OpenSpec refuses this spec: it has no section "## ${name}".`,
    ),
  );
}

/** Requirements without a scenario, which OpenSpec refuses; a removed or renamed one needs none. */
function missingScenarios(drafts: readonly SpecDraft[], path: string): Diagnostic[] {
  return drafts
    .filter(
      ({ metadata: { requirement, ears_patterns, delta }, lifecycle }) =>
        requirement !== undefined &&
        ears_patterns === undefined &&
        lifecycle === "active" &&
        (delta === undefined || delta === "added" || delta === "modified"),
    )
    .map(({ span, title }) =>
      structureWarning(
        { path, line: span.start_line },
        "scenario_missing",
        `OpenSpec refuses the requirement "${title}": it has no "#### Scenario:".`,
      ),
    );
}

function draftsOf(scan: MarkdownScan, path: string): readonly SpecDraft[] {
  const document = openspecDocumentOf(path);
  switch (document?.kind) {
    case "spec":
    case "delta":
      return requirementBlocks(scan, document);
    case "proposal":
      return proposalBlocks(scan, document);
    case "design":
    case "project":
      return segmentsOf(scan, 2)
        .filter((segment) => segment.hasContent)
        .map((segment) => sectionBlock(scan, document, segment));
    case "tasks":
      return taskBlocks(scan, document);
    case undefined:
      return [];
  }
}

const taskNumber = /^(\d+(?:\.\d+)*)[.)]?(?=\s)/;

/** Each checkbox of a change's tasks.md. */
function taskBlocks(scan: MarkdownScan, document: OpenspecDocument): SpecDraft[] {
  let heading = 0;
  let section = "";
  return taskItemsIn(scan, scan.bodyLine, scan.lineCount).map((item) => {
    while ((scan.headings[heading]?.line ?? item.line) < item.line) {
      section = scan.headings[heading]?.title || section;
      heading += 1;
    }
    const number = taskNumber.exec(item.text)?.[1];
    const details = detailText(scan, item);
    const content = details === "" ? item.text : `${item.text}\n${details}`.trim();
    const title = blockTitle(item.text) || "Task";
    return toDraft(scan, document, {
      id: `${document.idStem}-tasks-${number ?? (slugOf(item.text) || "task")}`,
      spec_type: "task",
      title,
      content: content === "" ? title : content,
      metadata: {
        status: taskStatusOf(item.state),
        ...(number !== undefined && { task: number }),
        ...(section !== "" && { section }),
      },
      from: item.line,
      to: item.details.at(-1)?.to ?? item.line,
    });
  });
}

/** Renders each file of the blocks as OpenSpec lays it out. */
function writeOpenspec(blocks: readonly SpecBlock[]): WrittenSpecs {
  return renderFiles(blocks, (path, own) => withFrontMatter("", contentOf(path, own)));
}

function contentOf(path: string, blocks: readonly SpecBlock[]): string {
  switch (openspecDocumentOf(path)?.kind) {
    case "proposal":
      return `${blocks.map(({ content }) => content).join("\n\n")}\n`;
    case "tasks":
      return `${taskParts(blocks).join("\n")}\n`;
    default:
      return writeSegments(specSegments(blocks));
  }
}

function specSegments(blocks: readonly SpecBlock[]): WritableSegment[] {
  const segments: WritableSegment[] = [];
  let listed: string[] = [];
  for (const [index, block] of blocks.entries()) {
    const { metadata, title } = block;
    if (metadata.listed === true) {
      listed.push(block.content);
      const next = blocks[index + 1]?.metadata;
      if (next?.listed === true && next.delta === metadata.delta) continue;
      const heading = `${String(metadata.delta).toUpperCase()} Requirements`;
      segments.push({ ...toWritableSegment(block), title: heading, level: 2, body: listed.join("\n") });
      listed = [];
    } else {
      const isRequirement = metadata.requirement !== undefined;
      const segment = toWritableSegment(block);
      segments.push(isRequirement ? { ...segment, title: `Requirement: ${title}` } : segment);
    }
  }
  return segments;
}

function taskParts(blocks: readonly SpecBlock[]): string[] {
  const parts: string[] = [];
  let section: unknown;
  for (const { content, metadata } of blocks) {
    if (typeof metadata.section === "string" && metadata.section !== section) {
      parts.push(...(parts.length === 0 ? [] : [""]), headingLine(metadata.section, 2), "");
    }
    section = metadata.section;
    parts.push(toListItem(taskMarker(metadata.status), content), ...(content.includes("\n") ? [""] : []));
  }
  return parts;
}

type Delta = "added" | "modified" | "removed" | "renamed";

const requirementTitle = /^Requirement:\s*(.*)$/i;
const scenarioTitle = /^Scenario:\s*(.*)$/i;
const deltaTitle = /^(ADDED|MODIFIED|REMOVED|RENAMED)\s+Requirements$/i;
/** A requirement named in a list: `- FROM: ` and `- TO: ` below RENAMED, plain below REMOVED. */
const listedName = /^[ \t]*[-*+][ \t]+(?:(FROM|TO):[ \t]*)?`?#{3}[ \t]*Requirement:[ \t]*([^`]*)`?[ \t]*$/i;

/** The requirements of a spec or delta, and its other text section by section. */
function requirementBlocks(scan: MarkdownScan, document: OpenspecDocument): SpecDraft[] {
  const scenarios = scenariosOf(scan);
  const drafts: SpecDraft[] = [];
  let delta: Delta | undefined;
  for (const segment of segmentsOf(scan, 3)) {
    const { heading } = segment;
    if (heading !== undefined && heading.level <= 2) delta = deltaOf(document, heading.title);
    const name = heading?.level === 3 ? requirementTitle.exec(heading.title)?.[1] : undefined;
    if (name !== undefined)
      drafts.push(requirementBlock(scan, document, { segment, name, delta, scenarios }));
    else if (heading?.level === 2 && (delta === "renamed" || delta === "removed") && segment.hasContent)
      for (const listed of listedBlocks(scan, document, { segment, delta })) drafts.push(listed);
    else if (segment.hasContent) drafts.push(sectionBlock(scan, document, segment));
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
  const sectionScenarios = scenarios.slice(
    lowerBound(scenarios, segment.startLine),
    lowerBound(scenarios, segment.endLine + 1),
  );
  return toDraft(scan, document, {
    id: `${document.idStem}-${slugOf(title) || "requirement"}`,
    spec_type: "requirement",
    title,
    content: segment.hasContent ? segment.body : title,
    metadata: {
      requirement: title,
      ...(delta !== undefined && { delta }),
      level: 3,
      ...(segment.parents.length > 0 && { parents: segment.parents }),
      ...criteriaOf(sectionScenarios),
    },
    from: segment.startLine,
    to: segment.endLine,
    links: delta === undefined || delta === "added" ? [] : linksTo(document, title, segment.startLine),
  });
}

/** Index of the first scenario on or after a line; scenarios are in line order. */
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

/** Requirements that a RENAMED or REMOVED section only names; the rest of its text stays a section. */
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

/** An archived change has been merged, so the requirements that it names can be gone. */
function linksTo(document: OpenspecDocument, name: string, line: number): DraftLink[] {
  if (document.archived || document.capability === undefined) return [];
  return [{ kind: "related", target: requirementId(document.capability, name), line }];
}

function sectionBlock(scan: MarkdownScan, document: OpenspecDocument, segment: Segment): SpecDraft {
  const title = segment.heading?.title || "Introduction";
  const part = document.kind === "design" ? "design-" : "";
  return toDraft(scan, document, {
    id: `${document.idStem}-${part}${slugOf(title) || "section"}`,
    spec_type: document.kind === "project" ? "constraint" : "design",
    title,
    content: segment.body,
    metadata: {
      level: segment.heading?.level ?? 0,
      ...(segment.parents.length > 0 && { parents: segment.parents }),
    },
    from: segment.startLine,
    to: segment.endLine,
  });
}

/** A proposal is read as a whole: why, what and what it affects. */
function proposalBlocks(scan: MarkdownScan, document: OpenspecDocument): SpecDraft[] {
  const { from, to } = withoutBlankEdges(scan, scan.bodyLine, scan.lineCount);
  if (to < from) return [];
  const heading = scan.headings.find(({ level }) => level === 1);
  return [
    toDraft(scan, document, {
      id: `${document.idStem}-proposal`,
      spec_type: "design",
      title: heading?.title || `Proposal: ${document.change ?? ""}`,
      content: textOfLines(scan, from, to),
      metadata: {},
      from,
      to,
    }),
  ];
}
