import type { Diagnostic } from "../../../protocol/diagnostic.ts";
import type { SpecType } from "../../../protocol/spec-block.ts";
import type { ParsedSpecs, SpecDraft, SpecSource } from "../../adapter.ts";
import {
  lineKinds,
  lineText,
  type MarkdownScan,
  scanMarkdown,
  structureWarning,
  textOfLines,
  unclosedDiagnostics,
} from "../../markdown/scan-markdown.ts";
import { headingsBetween, withoutBlankEdges } from "../../markdown/segments.ts";
import { slugOf } from "../../model/block-title.ts";
import type { LineRange } from "../../model/task-list.ts";
import { criteriaOf } from "./criteria.ts";
import {
  codeKey,
  duplicateNumber,
  type KiroDocument,
  nothingFound,
  requirementId,
  requirementTarget,
  sectionDraft,
} from "./kiro-document.ts";
import {
  chapterNumber,
  isAcceptanceLine,
  isAcceptanceTitle,
  isConstraintTitle,
  isStatementItem,
  isStorySentence,
  isStoryTitle,
  lastLineOf,
  type RequirementSection,
  type RequirementSections,
  requirementSections,
  storyBehindLabel,
} from "./requirement-sections.ts";

/**
 * Reads a requirements.md: a block per requirement section, and one per section of non-functional
 * requirements or constraints outside of them.
 */
export function parseRequirements(source: SpecSource, document: KiroDocument): ParsedSpecs {
  const scan = scanMarkdown(source.text);
  const found = requirementSections(scan);
  const requirements = found.sections.filter(({ kind }) => kind === "requirement");
  const sections = [...found.sections, ...otherSections(scan, found)];
  // Statements outside requirements are constraints on all of them; in a document without requirements, they are the
  // requirements.
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
  const message = `"${title}" has no acceptance criteria.`;
  return structureWarning({ path, line: span.start_line }, "requirement_without_criteria", message);
}

/** `NFR-1`, `FR-001`, `NFR-PERF-006`, `AC-1.2`, `US 3`, `FR-A1`. */
const code =
  "((?:\\p{Lu}{1,8}(?:[-_]\\p{Lu}{1,12}){0,3}[-_]?|(?:US|FR|NFR|AC|SC|BR|RF|RNF) )\\d+(?:\\.\\d+)*)";
const closing = "(?:\\*\\*|__|\\]|`)";
/** A code that opens a heading, list item, paragraph or row of a table, and ends with a mark. */
const statement = new RegExp(
  `^[ \\t>]*(?:[-*+][ \\t]+|\\d{1,4}[.)][ \\t]+|\\|[ \\t]*)?(?:\\[[ xX]\\][ \\t]+)?(?:\\*\\*|__|\\[|\`)?${code}(?:${closing}|[ \\t]*(?:[:：.)|(–—-]|$))`,
  "u",
);
const storyNumber = /^(?:user )?story\s+(\d+)/i;

/**
 * The ids by which links name the statements of a section: `US-2` and `NFR-1` in its heading or its list items. A dotted code has
 * the id of its stem, like the number of a criterion.
 */
function statementAliases(scan: MarkdownScan, section: RequirementSection, document: KiroDocument): string[] {
  const { heading, from, to } = section;
  const found = new Set<string>();
  const add = (text: string): void => {
    const written = statement.exec(text)?.[1];
    if (written === undefined) return;
    found.add(codeKey(written.split(".")[0] ?? written));
  };
  const title = heading.title.replace(/^[*_\s]+/, "");
  add(title);
  const story = storyNumber.exec(title)?.[1];
  if (story !== undefined) found.add(codeKey(`US-${story}`));
  const headings = new Map(headingsBetween(scan, from, to).map((each) => [each.line, each.title]));
  for (let line = from; line <= to; line += 1) {
    if (scan.kinds[line - 1] === lineKinds.prose) add(headings.get(line) ?? lineText(scan, line));
  }
  return [...found].map((key) => requirementTarget(document.feature, key));
}

/** A list item or table row that starts with the code of a requirement, such as `- **FR-1**: …` or `| REQ-02 | …`. */
const codedStatement =
  /^[ \t]*(?:[-*+][ \t]+|\d{1,4}[.)][ \t]+|\|[ \t]*)(?:\[[ xX]\][ \t]+)?(?:\*\*|__)?(?:N?FR|REQ|R?N?F|BR|UR|TR)[-_ ]?(?:[A-Z]{1,12}[-_])?\d+(?:\.\d+)*(?:\*\*|__|[ \t]*[:：.)|–—-])/;

/**
 * The sections outside of the requirement sections that apply to all requirements: non-functional requirements and constraints by
 * their title, and lists of statements in EARS or with codes.
 */
function otherSections(scan: MarkdownScan, found: RequirementSections): RequirementSection[] {
  const ends = new Map(found.sections.map(({ heading, to }) => [heading, to]));
  const starts = new Set(ends.keys());
  const sections: RequirementSection[] = [];
  let taken = 0;
  for (const [index, heading] of scan.headings.entries()) {
    taken = Math.max(taken, ends.get(heading) ?? 0);
    if (heading.line <= taken) continue;
    const from = heading.end_line + 1;
    if (isStoryTitle(heading.title)) continue;
    const isConstraint = isConstraintTitle(heading.title);
    if (
      !isConstraint &&
      !hasStatements(scan, from, (scan.headings[index + 1]?.line ?? scan.lineCount + 1) - 1)
    )
      continue;
    taken = lastLineOf(scan, index, { starts, parts: found.parts });
    // In a document without other requirements, "2. Orders" is the second requirement.
    const number = found.sections.length === 0 ? chapterNumber(heading.title) : undefined;
    if (textOfLines(scan, from, taken).trim() === "") continue;
    const kind = isConstraint ? "constraint" : "list";
    sections.push({ heading, number: kind === "list" ? number : undefined, kind, from, to: taken });
  }
  return sections;
}

function hasStatements(scan: MarkdownScan, from: number, to: number): boolean {
  for (let line = from; line <= to; line += 1) {
    if (scan.kinds[line - 1] !== lineKinds.prose) continue;
    const text = lineText(scan, line);
    if (codedStatement.test(text) || isStatementItem(text)) return true;
  }
  return false;
}

const mayBeStory =
  /^\s*(?:[-*+>]\s+)*["“«]?(?:\*\*|__|[*_])?(?:as\b|como\b|als\b|en tant\b|come\b|jako\b|作为|作為|身为|.{1,60}(?:として|로서)|как\b|як\b|أنا|ك)/iu;
/** "I want …" and "so that …" on separate lines. */
const nextClause =
  /^(?:\*\*|__|[*_])?(?:i\b|we\b|so that\b|so\b|in order\b|quiero\b|quero\b|eu\b|para\b|möchte\b|damit\b|je\b|afin\b|我|以便|从而|從而)/iu;
const listMark = /^\d+(?:\.\d+)*[.)]?\s/;

/**
 * The user story of a requirement, before its acceptance criteria: the paragraph after `**User Story:**` or its translations, or
 * below such a heading. Several stories are joined by a line feed.
 */
function userStoryOf(scan: MarkdownScan, lines: LineRange): string | undefined {
  const titles = new Map(headingsBetween(scan, lines.from, lines.to).map(({ line, title }) => [line, title]));
  const stories: string[] = [];
  for (let line = lines.from; line <= lines.to; line += 1) {
    if (scan.kinds[line - 1] !== lineKinds.prose) continue;
    const title = titles.get(line);
    const text = lineText(scan, line);
    if (title === undefined ? isAcceptanceLine(text) : isAcceptanceTitle(title)) break;
    const behind = title === undefined ? storyBehindLabel(text) : isStoryTitle(title) ? "" : undefined;
    if (behind === undefined && title === undefined && stories.length === 0) {
      const story = unlabelledStory(scan, { from: line, to: lines.to });
      if (story !== undefined) return story;
    }
    if (behind === undefined) continue;
    const paragraph = paragraphAfter(scan, { from: line + 1, to: lines.to }, behind === "");
    const story = [behind, ...paragraph].join(" ").trim();
    if (story !== "") stories.push(story);
  }
  return stories.length === 0 ? undefined : stories.join("\n");
}

/** The sentence that starts at a line, if its words make it a story; blank lines can separate its clauses. */
function unlabelledStory(scan: MarkdownScan, lines: LineRange): string | undefined {
  if (!mayBeStory.test(lineText(scan, lines.from))) return undefined;
  const clauses: string[] = [];
  for (let line = lines.from; line <= Math.min(lines.to, lines.from + 12); line += 1) {
    const raw = lineText(scan, line).trim();
    if (raw === "") continue;
    if (scan.kinds[line - 1] !== lineKinds.prose || /^#{1,6}\s/.test(raw) || isAcceptanceLine(raw)) break;
    const text = raw.replace(/^(?:[-*+>]\s+)+/, "");
    const follows = clauses.length > 0 && lineText(scan, line - 1).trim() !== "" && text === raw;
    if (clauses.length > 0 && !follows && !nextClause.test(text)) break;
    if (listMark.test(text)) break;
    clauses.push(text.replace(/(?:\*\*|__)/g, ""));
  }
  const story = clauses.join(" ").trim();
  return isStorySentence(story) ? story : undefined;
}

/** The lines of the paragraph that starts at `from`, or after blank lines if `skipsBlank`. */
function paragraphAfter(scan: MarkdownScan, lines: LineRange, skipsBlank: boolean): string[] {
  const paragraph: string[] = [];
  for (let line = lines.from; line <= lines.to; line += 1) {
    const text = lineText(scan, line).trim().replace(/^>\s?/, "");
    if (text === "" && skipsBlank && paragraph.length === 0) continue;
    if (text === "" || /^#{1,6}\s/.test(text) || scan.kinds[line - 1] !== lineKinds.prose) break;
    if (isAcceptanceLine(text) || listMark.test(text) || storyBehindLabel(text) !== undefined) break;
    paragraph.push(text);
  }
  return paragraph;
}
