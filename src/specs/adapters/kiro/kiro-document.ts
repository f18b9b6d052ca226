import { matchesOf } from "../../../base/matches.ts";
import type { Diagnostic } from "../../../protocol/diagnostic.ts";
import type { DraftLink, SpecDraft } from "../../adapter.ts";
import {
  lineKinds,
  lineText,
  type MarkdownScan,
  scanMarkdown,
  structureWarning,
  textOfLines,
} from "../../markdown/scan-markdown.ts";
import { slugOf } from "../../model/block-title.ts";
import { mentionsIn } from "../../model/mentions.ts";
import type { LineRange } from "../../model/task-list.ts";

/** A warning that two blocks of a document have the same number: both are kept, and links mean the first. */
export function duplicateNumber(path: string, line: number, message: string): Diagnostic {
  return structureWarning({ path, line }, "number_duplicate", message);
}

/** A warning for a document that has text but no block of its kind; none for an empty document. */
export function nothingFound(scan: MarkdownScan, path: string, what: string): Diagnostic[] {
  if (scan.text.trim() === "") return [];
  return [structureWarning({ path, line: 1 }, `no_${what}`, `No ${what} was found in this file.`)];
}

/** A section that becomes a block. `lines` is its body without blank lines at the edges. */
export interface SectionPart {
  readonly id: string;
  readonly heading: { readonly title: string; readonly line: number; readonly end_line: number };
  readonly lines: LineRange;
}

/** The common fields of blocks from sections. The content of a section without text is its title. */
export function sectionDraft(
  scan: MarkdownScan,
  { id, heading, lines }: SectionPart,
  document: KiroDocument,
): Omit<SpecDraft, "spec_type" | "metadata"> {
  const title = heading.title || "Untitled";
  return {
    id: { kind: "base", value: id },
    framework: "fw_a",
    title,
    content: textOfLines(scan, lines.from, lines.to) || title,
    tags: ["fw_a", document.feature],
    lifecycle: "active",
    priority: "medium",
    span: { start_line: heading.line, end_line: Math.max(heading.end_line, lines.to) },
    feature: document.folder,
    links: [],
    mentions: mentionsIn(scan, lines.from, lines.to),
  };
}

type KiroDocumentKind = "requirements" | "bugfix" | "design" | "tasks";

/** The facts in the path of a Kiro document. */
export interface KiroDocument {
  readonly kind: KiroDocumentKind;
  /** The folder that the documents of a feature share, project-relative. */
  readonly folder: string;
  /** The feature as ids spell it; nested folders are joined by hyphens. */
  readonly feature: string;
}

const kiroPath = /(?:^|\/)\.kiro\/specs\/(?:(.*)\/)?(requirements|bugfix|design|tasks)\.md$/s;

/** The document at a path; undefined where the path is not one of Kiro's. */
export function kiroDocumentOf(path: string): KiroDocument | undefined {
  const match = path.endsWith(".md") ? kiroPath.exec(path) : null;
  if (match === null) return undefined;
  return {
    kind: match[2] as KiroDocumentKind,
    folder: path.slice(0, path.lastIndexOf("/")),
    feature: slugOf(match[1] ?? "") || "project",
  };
}

/** The base id of the requirement with a number, in requirements.md or bugfix.md of a feature. */
export function requirementId(feature: string, number: string): string {
  return requirementTarget(feature, `req${number}`);
}

/** The target of a link to a requirement, to a statement with a code ("nfr-1") or to all ("*"). */
export function requirementTarget(feature: string, end: string): string {
  return `fw_a-${feature}-requirements-${end}`;
}

/** A number such as "01.02" as links and ids spell it: "1.2". */
export function toDottedNumber(written: string): string {
  return written.includes("0") ? written.replace(/(^|\.)0+(?=\d)/g, "$1") : written;
}

/** A reference after a label: a requirement by its number, a statement by its code, or all. */
interface RequirementName {
  /** The end of the target's id: "req3", "nfr-1", or "*" for all requirements of the document. */
  readonly target: string;
  /** The name of the criterion or requirement in coverage: "3.2", "3", "NFR-1". */
  readonly number: string;
}

export interface RequirementLabel {
  readonly kind: "implements" | "validates";
  readonly line: number;
  /** The text after the label. */
  readonly rest: string;
  /** The line contains only the label, in emphasis, and its value. */
  readonly isOwnLine: boolean;
  /** Empty where the words name nothing that has a number or a code. */
  readonly names: readonly RequirementName[];
}

const words =
  "(?:Requirements?|Reqs?|要件|需求|要求|요구 ?사항|Requisitos?|Requerimientos?|Exigences?|Anforderung(?:en)?|Requisiti|Требовани[ея]|المتطلبات)";
const validatesWords = "(?:Validates|Valida|Valide|Validiert|检验|验证|驗證|検証|검증)";
const implementsLabel = new RegExp(`(?:^|[_*])${words}[*_]{0,2}\\s*[:：]\\s*(.*)$`, "i");
const validatesLabel = new RegExp(
  `(?<![\\p{L}])${validatesWords}(?:\\s*[:：*_]+\\s*(?:${words}(?![a-z]))?|\\s+${words}(?![a-z]))\\s*[:：]?(.*)$`,
  "iu",
);
/** A word that every label has; most sections and lines lack it, and are skipped. */
const mayHaveLabel = /req|valid|exigence|anforderung|требован|要件|需求|要求|요구|验|驗|検証|검증|متطلب/i;
const ownLine = /^\s*(?:[-*+]\s+)?[_*]{1,3}\p{L}/u;
const bulletBefore = /^\s*(?:[-*+]\s+)?/;
/** Another label on the same line, such as `_Design: …_` or `| Success: …`. */
const nextLabel = /(?:\s\|\s+|[*_]{1,2}[\s,;|]+(?=[*_]))[*_]{0,2}\p{L}[\p{L} ]{0,40}[:：].*$/u;

/** A longer range counts as its two ends only. */
const longestRange = 200;
/** References beyond this limit per line are ignored; a few ranges could name millions. */
const maxReferences = 1000;

const between =
  "\\s*(?:[-–—~〜～]|\\.{2,3}|…|\\b(?:to|through|thru|until|bis|até|hasta)\\b|から|至|到|a(?=\\s))\\s*";
/** A number, or a code such as `NFR-PERF-006`, followed by the criterion: `US-1.AC-3`. */
const name = `(?:(${words}|\\p{L}{1,20}(?:[-_]\\p{Lu}{1,12}){0,3})[-_ #]{0,2})?(\\d+(?:\\.\\d+)*)(?:[. ]AC[-_ ]?(\\d+))?`;
const namePattern = new RegExp(
  `(?<![/#.\\d\\p{L}])${name}(?![\\p{L}\\d]|\\.\\d)(?:${between}${name}(?![\\p{L}\\d]))?`,
  "giu",
);
/** Words before a number that only mark it as the number of a requirement. */
const plainWord = new RegExp(`^(?:${words}|r|no|nr|n|and|y|e|et|und|и|及|和|与|と|to|through)$`, "i");
/** The usual codes of statements, in any case, also with a space before the number. */
const familiar = /^(?:ac|us|fr|nfr|sc|br|ur|tr|uir|cr|ir|sr|dr|rf|rnf|nf|con|story|user ?story)$/i;
const allOf =
  /^[^\p{L}]*(?:all|every|alle?s?|tod[ao]s|tous|toutes|tutti|全般|全て|すべて|全部|所有|모두|전체|все|جميع|كل)(?:[^\p{L}]*$|[的の ]*(?:the |les |los |as |os )?(?:requirements?|要件|需求|要求|requisitos|exigences|anforderungen|требования|المتطلبات)(?![\p{L}]))|\ball (?:the )?requirements?\W*$|^全要件/iu;

/**
 * The labels of lines that name requirements: `_Requirements: 1.1, 2.3_` (in several languages) is of
 * the kind `implements`, `Validates: Requirements 1.1` of the kind `validates`. Linear in the text.
 */
export function requirementLabels(scan: MarkdownScan, ranges: readonly LineRange[]): RequirementLabel[] {
  const labels: RequirementLabel[] = [];
  for (const { from, to } of ranges) {
    if (!mayHaveLabel.test(textOfLines(scan, from, to))) continue;
    for (let line = from; line <= to; line += 1) {
      if (scan.kinds[line - 1] !== lineKinds.prose) continue;
      const text = lineText(scan, line).slice(0, 4000);
      const label = mayHaveLabel.test(text) ? labelOf(text) : undefined;
      if (label === undefined) continue;
      const rest = label.rest.replace(nextLabel, "").replace(/[_*\s]+$/, "");
      labels.push({ kind: label.kind, line, rest, isOwnLine: ownLine.test(text), names: namesIn(rest) });
    }
  }
  return labels;
}

/** The labels of a text; scans its lines only if it can have one. */
export function labelsInText(text: string): RequirementLabel[] {
  if (!mayHaveLabel.test(text)) return [];
  const scan = scanMarkdown(text);
  return requirementLabels(scan, [{ from: 1, to: scan.lineCount }]);
}

/** The links of labels to blocks of a feature, each once, from the first line that has it. */
export function requirementLinks(labels: readonly RequirementLabel[], feature: string): DraftLink[] {
  const links = new Map<string, DraftLink>();
  for (const { kind, line, names } of labels) {
    for (const { target: end, number } of names) {
      const target = requirementTarget(feature, end);
      const isWhole = end === "*" || end === `req${number}`;
      const key = `${kind} ${target} ${number}`;
      if (links.has(key)) continue;
      links.set(key, { kind, target, ...(isWhole ? {} : { criterion: number }), line });
    }
  }
  return [...links.values()];
}

function labelOf(text: string): { kind: "implements" | "validates"; rest: string } | undefined {
  const validates = validatesLabel.exec(text);
  if (validates !== null) return { kind: "validates", rest: validates[1] ?? "" };
  const implemented = implementsLabel.exec(text.replace(bulletBefore, ""));
  return implemented === null ? undefined : { kind: "implements", rest: implemented[1] ?? "" };
}

/**
 * The references in a list: "1.1, 2.3 and R4", "1.1–1.4", "AC-1.1 through AC-1.3", "NFR-PERF-006", "All".
 *
 * The first part of a number is the number of the requirement. A code names the statement that has it, and `AC-1.2` names the
 * second criterion of requirement 1.
 */
export function namesIn(list: string): RequirementName[] {
  if (allOf.test(list)) return [{ target: "*", number: "*" }];
  const names: RequirementName[] = [];
  // Remarks such as "FR-3 (Real-Time Updates)" name nothing.
  const plain = list.replace(/\([^()]{0,400}\)/g, (remark) =>
    /^\([\p{Lu}\d\s.,;&_-]+\)$/u.test(remark) ? remark : " ",
  );
  for (const match of matchesOf(namePattern, plain)) {
    if (names.length > maxReferences) break;
    const [, word = "", first = "", inner, lastWord = "", last] = match;
    const family = familyOf(word, match[0]);
    if (family === undefined) continue;
    const isRange = last !== undefined && (lastWord === "" || familyOf(lastWord, lastWord) === family);
    const numbers = isRange ? rangeOf(first, last) : [first];
    for (const number of numbers) names.push(nameOf(family, number, inner));
    if (last !== undefined && !isRange) {
      const other = familyOf(lastWord, lastWord);
      if (other !== undefined) names.push(nameOf(other, last, undefined));
    }
  }
  return names;
}

/** "" for the number of a requirement, the letters of a code in capitals, `undefined` for anything else. */
function familyOf(word: string, written: string): string | undefined {
  if (written.includes("#") && !/^(?:req|要|需)/i.test(word)) return undefined;
  if (word === "" || plainWord.test(word)) return "";
  if (familiar.test(word)) return /story$/i.test(word) ? "US" : word.toUpperCase();
  const isCode = /^\p{Lu}{1,8}(?:[-_]\p{Lu}{1,12})*$/u.test(word);
  return isCode && !written.startsWith(`${word} `) ? word.replaceAll("_", "-") : undefined;
}

function nameOf(family: string, written: string, inner: string | undefined): RequirementName {
  const number = toDottedNumber(written);
  const dot = number.indexOf(".");
  const stem = dot === -1 ? number : number.slice(0, dot);
  const criterion = inner === undefined ? number : `${stem}.${toDottedNumber(inner)}`;
  // A dotted AC-1.2 is a criterion of requirement 1, AC-2 the one that carries this code.
  if (family === "" || (family === "AC" && dot !== -1)) return { target: `req${stem}`, number: criterion };
  if (family === "US" && criterion.includes(".")) return { target: `us-${stem}`, number: criterion };
  return { target: codeKey(`${family}-${stem}`), number: `${family}-${written}` };
}

/** One spelling for each code: `NFR-001`, `nfr 1` and `NFR1` are "nfr-1". */
export function codeKey(code: string): string {
  return code
    .toLowerCase()
    .replace(/[_ ]/g, "-")
    .replace(/(?<=\p{L})(?=\d)/gu, "-")
    .replace(/(^|[.-])0+(?=\d)/g, "$1");
}

/** The numbers from first to last where they differ in their last part only, else the two ends. */
function rangeOf(first: string, last: string): string[] {
  const stem = first.slice(0, first.lastIndexOf(".") + 1);
  const from = Number(first.slice(stem.length));
  const to = Number(last.slice(stem.length));
  const isRange = last.startsWith(stem) && Number.isInteger(to) && to > from && to - from <= longestRange;
  return isRange
    ? Array.from({ length: to - from + 1 }, (_, step) => `${stem}${from + step}`)
    : [first, last];
}
