import type { AcceptanceCriterion, EarsEntry, Priority, SpecMetadata } from "../../../protocol/spec-block.ts";
import type { SpecDraft } from "../../adapter.ts";
import {
  type Heading,
  lineKinds,
  lineText,
  type MarkdownScan,
  textOfLines,
} from "../../markdown/scan-markdown.ts";
import { listItemEnd, listItemText, listMarker, withoutBlankEdges } from "../../markdown/segments.ts";
import { blockTitle, joinSpace, slugOf } from "../../model/block-title.ts";
import { mentionsIn } from "../../model/mentions.ts";
import { classifyCriterion, scenarioCriterion } from "../../model/scenario.ts";
import type { LineRange } from "../../model/task-list.ts";

/** `- **FR-001**: …`, also FR-001a, NFR-001, SC-001, with a box or the colon inside the bold; `- FR-001: …`, `- FR-001 - …`; in a numbered list, too. */
const statement =
  /^[ \t]*(?:[-*+]|\d{1,4}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(?:\*\*((?:N?FR|SC)-\d+[A-Za-z]?)\b|((?:N?FR|SC)-\d+[A-Za-z]?)(?=[:：]|[ \t]+[-–—][ \t]))/;

/** The user stories and numbered statements of a spec.md, in the order of the text. */
export function specBlocks(scan: MarkdownScan, document: { feature: string; folder: string }): SpecDraft[] {
  const drafts = [...storyBlocks(scan, document), ...statementBlocks(scan, document)];
  return drafts.sort((one, other) => one.span.start_line - other.span.start_line);
}

function statementBlocks(scan: MarkdownScan, document: { feature: string; folder: string }): SpecDraft[] {
  const drafts: SpecDraft[] = [];
  let heading = 0;
  let section: string | undefined;
  for (let line = scan.bodyLine; line <= scan.lineCount; line += 1) {
    while ((scan.headings[heading]?.line ?? scan.lineCount + 1) <= line) {
      section = scan.headings[heading]?.title || section;
      heading += 1;
    }
    if (scan.kinds[line - 1] !== lineKinds.prose) continue;
    const [, bold, plain] = statement.exec(lineText(scan, line)) ?? [];
    const code = bold ?? plain;
    if (code === undefined) continue;
    const limit = (scan.headings[heading]?.line ?? scan.lineCount + 1) - 1;
    const lines = { from: line, to: listItemEnd(scan, line, limit) };
    drafts.push(toDraft(scan, lines, { code, section, ...document }));
    // A statement can contain nested statements, which are separate blocks.
  }
  return drafts;
}

function toDraft(
  scan: MarkdownScan,
  lines: LineRange,
  place: { code: string; section: string | undefined; feature: string; folder: string },
): SpecDraft {
  const { code, section, feature, folder } = place;
  const content = listItemText(scan, lines.from, lines.to);
  const kind = code.startsWith("SC") ? "success-criterion" : "functional-requirement";
  const open = /\[NEEDS CLARIFICATION[^\]]*\]/.test(content);
  const metadata: SpecMetadata = {
    requirement: code,
    ...(section !== undefined && { section }),
    ...(open && { needs_clarification: true }),
    ears_patterns: [{ pattern: patternOf(content), text: wordsOf(content), line: lines.from, number: code }],
  };
  return {
    id: { kind: "base", value: statementId(feature, code) },
    framework: "fw_d",
    spec_type: "requirement",
    title: blockTitle(content.replace(/^\*\*([^*]*)\*\*/, "$1")) || code,
    content,
    tags: ["fw_d", feature, kind],
    lifecycle: "active",
    priority: "medium",
    metadata,
    span: { start_line: lines.from, end_line: lines.to },
    feature: folder,
    links: [],
    mentions: mentionsIn(scan, lines.from, lines.to),
  };
}

/** Spec Kit writes MUST where EARS writes SHALL. */
function patternOf(content: string): ReturnType<typeof classifyCriterion>["pattern"] {
  const { pattern } = classifyCriterion(wordsOf(content));
  return pattern === "unclassified" && /\bMUST\b/.test(content) ? "ubiquitous" : pattern;
}

/** A statement without its number, white space joined. */
function wordsOf(content: string): string {
  return joinSpace(
    content.replace(/^(?:\*\*[^*]*\*\*[ \t]*|(?:N?FR|SC)-\d+[A-Za-z]?(?:[ \t]+[-–—](?=[ \t]))?)[:：]?/, ""),
  );
}

/** `User Story 1 - …`, `US1: …`, `Story 2: …`, `🎯 US-3`, and translations. */
const storyTitle =
  /^[^\p{L}\d]{0,8}(?:User[ -]?Stor(?:y|ies)|Story|US|ユーザー?ストーリー|用户故事|用戶故事|使用者故事|사용자 ?스토리|Hist[oó]ria de(?:l)? usu[aá]rio|Histoire utilisateur|R[eé]cit utilisateur|Пользовательская история)[ \t]*[-#:：_]?[ \t]*(\d+)(?![\d.])/iu;
/** The only story of the older template, whose scenarios are in a separate section. */
const primaryTitle = /^Primary User Story\b/i;
const scenariosTitle = /^Acceptance Scenarios\b/i;
const scenariosLabel =
  /^[ \t]*(?:\*\*|__)?(?:Acceptance (?:Scenarios?|Criteria|Tests?)\b|验收(?:场景|标准|条件)|驗收(?:情境|場景|標準|條件)|受け?入れ?(?:シナリオ|基準|条件)|인수 ?(?:시나리오|기준)|(?:Cen[aá]rios?|Crit[eé]rios?) de Aceita[cç]|(?:Escenarios?|Criterios?) de Acepta|Sc[eé]narios? d['’]acceptation|Crit[eè]res d['’]acceptation)/iu;
const storyPriority =
  /(?:\b(?:Priority|Priorit[eé]|Prioridade?)|优先级|優先級|優先度|우선순위)[:：]?[ \t]*P(\d)|[[(（]P(\d)[\])）]/iu;
const givenOnly = /^(?:\[[ xX]\] )?(?:\*\*|__)?given\b(?![\s\S]*\b(?:when|then)\b)/i;
const laterStep = /^[ \t]*[-*+][ \t]+(?:\*\*|__)?(?:when|then|and|but)\b/i;
/** P1 is what a first release needs and Spec Kit's highest priority, so it is "high" here. */
const priorityOf: Readonly<Record<string, Priority>> = { "0": "critical", "1": "high", "2": "medium" };

/** The user stories of a spec.md. */
function storyBlocks(scan: MarkdownScan, document: { feature: string; folder: string }): SpecDraft[] {
  const drafts: SpecDraft[] = [];
  for (const [index, heading] of scan.headings.entries()) {
    const number = storyTitle.exec(heading.title)?.[1];
    const isPrimary = number === undefined && primaryTitle.test(heading.title);
    if (heading.level > 4 || (number === undefined && !isPrimary)) continue;
    const body = bodyOf(scan, index);
    drafts.push(toStoryDraft(scan, { heading, body, number }, document));
  }
  return drafts;
}

/** The lines below a story's heading, without the thematic break before the next story. */
function bodyOf(scan: MarkdownScan, index: number): LineRange {
  const storyHeading = scan.headings[index];
  const level = storyHeading?.level ?? 1;
  let next = index + 1;
  if (scenariosTitle.test(scan.headings[next]?.title ?? "")) next += 1;
  while ((scan.headings[next]?.level ?? 0) > level) next += 1;
  const end = (scan.headings[next]?.line ?? scan.lineCount + 1) - 1;
  let lines = withoutBlankEdges(scan, (storyHeading?.end_line ?? 0) + 1, end);
  while (lines.to >= lines.from && isBreak(scan, lines.to))
    lines = withoutBlankEdges(scan, lines.from, lines.to - 1);
  return lines;
}

function isBreak(scan: MarkdownScan, line: number): boolean {
  const isProse = scan.kinds[line - 1] === lineKinds.prose;
  return isProse && /^[ \t]*(?:-{3,}|\*{3,}|_{3,})[ \t]*$/.test(lineText(scan, line));
}

function toStoryDraft(
  scan: MarkdownScan,
  story: { heading: Heading; body: LineRange; number: string | undefined },
  document: { feature: string; folder: string },
): SpecDraft {
  const { heading, body, number } = story;
  const { feature, folder } = document;
  const [, spelled, bare] = storyPriority.exec(heading.title) ?? [];
  const priority = spelled ?? bare;
  const metadata: SpecMetadata = {
    level: heading.level,
    ...(number !== undefined && { story: `US${number}` }),
    ...storyText(scan, body),
    ...criteriaOf(scan, body, number),
  };
  const content = textOfLines(scan, body.from, body.to);
  return {
    id: {
      kind: "base",
      value: number === undefined ? statementId(feature, "primary-user-story") : storyId(feature, number),
    },
    framework: "fw_d",
    spec_type: "requirement",
    title: heading.title,
    content: content === "" ? heading.title : content,
    tags: ["fw_d", feature, "user-story"],
    lifecycle: "active",
    priority: priority === undefined ? "medium" : (priorityOf[priority] ?? "low"),
    metadata,
    span: { start_line: heading.line, end_line: Math.max(body.to, heading.end_line) },
    feature: folder,
    links: [],
    mentions: mentionsIn(scan, heading.line, body.to),
  };
}

/** The first paragraph of a story. */
function storyText(scan: MarkdownScan, body: LineRange): { user_story?: string } {
  const lines: string[] = [];
  for (let line = body.from; line <= body.to && scan.kinds[line - 1] === lineKinds.prose; line += 1) {
    const text = lineText(scan, line).trim();
    if (text === "" || /^(?:#|\*\*|\d+[.)][ \t]|[-*+][ \t])/.test(text)) break;
    lines.push(text);
  }
  return lines.length === 0 ? {} : { user_story: lines.join(" ") };
}

/** The list items that are scenarios, or that are below a label for scenarios. */
function criteriaOf(
  scan: MarkdownScan,
  body: LineRange,
  story: string | undefined,
): Pick<SpecMetadata, "acceptance_criteria" | "ears_patterns"> {
  const criteria: AcceptanceCriterion[] = [];
  const entries: EarsEntry[] = [];
  let isLabelled = false;
  for (let line = body.from; line <= body.to; line += 1) {
    if (scan.kinds[line - 1] !== lineKinds.prose) continue;
    const text = lineText(scan, line);
    const marker = listMarker.exec(text);
    if (marker === null) {
      if (scenariosLabel.test(text.replace(/^[# \t]+/, ""))) isLabelled = true;
      else if (/^[ \t]*(?:#|(?:\*\*|__)[^*_]+(?:\*\*|__))/.test(text)) isLabelled = false;
      continue;
    }
    let end = listItemEnd(scan, line, body.to);
    // A scenario whose steps are separate bullets is one criterion.
    if (givenOnly.test(listItemText(scan, line, end))) {
      while (end < body.to && laterStep.test(lineText(scan, end + 1)))
        end = listItemEnd(scan, end + 1, body.to);
    }
    const item = listItemText(scan, line, end);
    const scenario = scenarioCriterion(item);
    if (scenario === undefined && !isLabelled) continue;
    const words = joinSpace(item);
    const { pattern, trigger, response } = scenario ?? classifyCriterion(words);
    const ownNumber = marker[1] ?? String(criteria.length + 1);
    criteria.push({ pattern, trigger, response });
    entries.push({
      pattern: pattern as EarsEntry["pattern"],
      text: words,
      line,
      number: story === undefined ? ownNumber : `${story}.${ownNumber}`,
    });
    line = end;
  }
  return criteria.length === 0 ? {} : { acceptance_criteria: criteria, ears_patterns: entries };
}

/** The facts in the path of a Spec Kit document. */
type SpeckitDocument =
  | { readonly kind: "constitution" }
  | {
      readonly kind: "spec" | "plan" | "tasks";
      /** The folder that the documents of a feature share, project-relative. */
      readonly folder: string;
      /** The folder's whole name in the form of ids; its number alone can occur twice. */
      readonly feature: string;
    };

const featurePath = /^(?:.*\/)?specs\/(\d{3}[^/]*)\/(spec|plan|tasks)\.md$/s;
const constitutionPath = /(?:^|\/)\.specify\/memory\/constitution\.md$/;
/** Folders of other tools that have a `specs` folder, too. */
const otherTools = /(?:^|\/)(?:\.kiro|openspec)\//;

/** The document at a path; undefined where the path is not one of Spec Kit's. */
export function speckitDocumentOf(path: string): SpeckitDocument | undefined {
  if (!path.endsWith(".md")) return undefined;
  if (constitutionPath.test(path)) return { kind: "constitution" };
  const [, name = "", kind] = featurePath.exec(path) ?? [];
  if (kind !== "spec" && kind !== "plan" && kind !== "tasks") return undefined;
  if (otherTools.test(path)) return undefined;
  return { kind, folder: path.slice(0, path.lastIndexOf("/")), feature: slugOf(name) };
}

export function storyId(feature: string, number: string): string {
  return `fw_d-${feature}-us${number}`;
}

/** The base id of a numbered statement, such as FR-001 or T012. */
export function statementId(feature: string, code: string): string {
  return `fw_d-${feature}-${code.toLowerCase()}`;
}
