import type { Diagnostic } from "../../../protocol/diagnostic.ts";
import type { SpecDraft } from "../../adapter.ts";
import { type MarkdownScan, textOfLines } from "../../markdown/scan-markdown.ts";
import { slugOf } from "../../model/block-title.ts";
import { mentionsIn } from "../../model/mentions.ts";
import type { LineRange } from "../../model/task-list.ts";

/** Two blocks of a document have the same number: both are kept, and links mean the first. */
export function duplicateNumber(path: string, line: number, message: string): Diagnostic {
  return { severity: "warning", rule: "structure", code: "number_duplicate", message, path, line };
}

/** A document that says something, and nothing of it is what such a document is for. */
export function nothingFound(scan: MarkdownScan, path: string, what: string): Diagnostic[] {
  if (scan.text.trim() === "") return [];
  return [
    {
      severity: "warning",
      rule: "structure",
      code: `no_${what}`,
      message: `No ${what} was found in this file.`,
      path,
      line: 1,
    },
  ];
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

// The words that mark the parts of a requirement, as Kiro, cc-sdd and translated documents write them.

const acceptanceWords = [
  "acceptance criteri(?:a|on)",
  "受け?入れ?(?:基準|条件)",
  "验收(?:标准|准则|条件)",
  "驗收(?:標準|準則|條件)",
  "(?:수용|인수) ?(?:기준|조건)",
  "akzeptanzkriterien",
  "crit[eè]res d['’]acceptation",
  "criterios de aceptaci[oó]n",
  "crit[eé]rios? de aceit(?:a[cç][aã]o|e)",
  "criterio de aceptaci[oó]n",
  "criteri di accettazione",
  "acceptatiecriteria",
  "kryteria (?:akceptacji|akceptacyjne)",
  "kabul kriterleri",
  "tiêu chí (?:chấp nhận|nghiệm thu)",
  "kriteria penerimaan",
  "критерии при[её]мки",
  "критер[иі]ї приймання",
  "接[受收](?:标准|條件|条件)",
  "(?:معايير|شروط) القبول",
].join("|");

const storyWords = [
  "user stor(?:y|ies)",
  "objective",
  "用户故事",
  "使用者故事",
  "ユーザー?ストーリー",
  "目的",
  "目标",
  "사용자 ?스토리",
  "hist[oó]ria(?: d[eo] usu[aá]rio)?",
  "storia utente",
  "histoire utilisateur",
  "récit utilisateur",
  "benutzergeschichte",
  "gebruikersverhaal",
  "пользовательская история",
  "قصة المستخدم",
].join("|");

const requirementWords =
  "requirements?|要件|需求|要求|요구 ?사항|anforderung|exigence|requisito|requerimiento|vereiste|wymaganie|gereksinim|yêu cầu|требование|вимога|المتطلب|متطلب";

const emphasis = "(?:\\*\\*|__|[*_])?";
const acceptanceTitle = new RegExp(`(?:${acceptanceWords})`, "i");
const acceptanceLine = new RegExp(
  `^(?:[-*+>]\\s+)?${emphasis}(?:${acceptanceWords})[^*_:：]{0,40}[:：]?${emphasis}\\s*[:：]?$`,
  "i",
);
const storyTitle = new RegExp(`^(?:${storyWords})\\s*[:：]?$`, "i");
const storyLine = new RegExp(
  `^(?:[-*+>]\\s*)?(?:(?:\\*\\*|__)(?:${storyWords})[^*_]{0,40}(?:\\*\\*|__)|(?:${storyWords})\\s*(?=[:：]))\\s*[:：]?\\s*(.*)$`,
  "is",
);
const requirementTitle = new RegExp(
  `^(?:(?:${requirementWords})\\s*[-#]?\\s*|(?:US|REQ|FR|BR)[-_ ]?|(?:user )?story\\s+|R-?(?=\\d+(?:\\.\\d+)*\\s*(?:[:：.|—–]|-\\s|$)))(\\d+(?:\\.\\d+)*)(?!\\.?\\d)`,
  "i",
);

/** Whether a heading, by its title, opens acceptance criteria. */
export function isAcceptanceTitle(title: string): boolean {
  return acceptanceTitle.test(title);
}

/** Whether a line is a label on its own, such as `**Acceptance Criteria:**`. */
export function isAcceptanceLine(line: string): boolean {
  return line.length < 200 && acceptanceLine.test(line.trim());
}

const constraintTitle =
  /\bnon[- ]?functional\b|\bconstraints?\b|\blimitations?\b|\bquality attributes?\b|\bn[aã]o[- ]funciona|\bno[- ]funcionales\b|\brestri[cç](?:ciones|[oõ]es)\b|\bnon[- ]fonctionnelles\b|\bcontraintes\b|\bnicht[- ]?funktional|\b(?:rand|rahmen)bedingungen\b|\beinschränkungen\b|非機能|制約|非功能|约束|約束|비기능|제약|нефункциональн|غير الوظيفية/i;
const constraintChapter = new RegExp(
  `^(?:\\d+(?:\\.\\d+)*[.):]?\\s+)?(?:[\\p{L}]+\\s+)?(?:${constraintTitle.source})[\\p{L}\\s&/,()-]*$`,
  "iu",
);

/** Whether a section limits all requirements of a document, by its title. */
export function isConstraintTitle(title: string): boolean {
  return constraintTitle.test(title);
}

/** Whether a title says nothing else: "4. Non-Functional Requirements", not "Rate limit constraints in v2". */
export function isConstraintChapter(title: string): boolean {
  return constraintChapter.test(title) && !/(?<!non[- ]?)\bfunctional\b/i.test(title);
}

/** Whether a heading says nothing but that a user story follows. */
export function isStoryTitle(title: string): boolean {
  return storyTitle.test(title);
}

/** The text behind a user story label on its line (perhaps ""); undefined without a label. */
export function storyBehindLabel(line: string): string | undefined {
  return storyLine.exec(line.trim())?.[1];
}

const sentenceStart =
  /^(?:[-*+>]\s+)*["“«]?(?:\*\*|__|[*_])?(?:as an?|as the|como(?: un[ao]?)?|als|en tant qu[e’']|come|jako|作为|作為|身为|як|как|bir)(?:\*\*|__|[*_])?[\s\p{L}“"']/iu;
const japaneseStory = /^(?:[-*+>]\s+)*.{1,60}(?:として|로서|으로서)[、,]?/u;
const wish =
  /\b(?:i(?:['’]d| would)? (?:want|need|like|can|expect|should be able)|we (?:want|need)|quiero|quero|queremos|desejo|deseo|necesito|preciso|gostaria|möchte|will ich|brauche|je (?:veux|souhaite|voudrais)|voglio|chcę)\b|我(?:们)?(?:想|希望|要|需要|能)|(?:し|が|で|せ|り|き|み|え|べ)?たい|できるように|하고 ?싶|хочу|хочем|أريد/iu;

/** Whether a paragraph is a user story by its words alone: "As a clerk, I want …, so that …". */
export function isStorySentence(text: string): boolean {
  const head = text.slice(0, 600);
  if (!sentenceStart.test(head) && !japaneseStory.test(head)) return false;
  return wish.test(head.replace(/[*_]/g, ""));
}

/** The number in a title such as "Requirement 3: Login", "要件2：x", "US-012"; leading zeros go. */
export function requirementNumber(title: string): string | undefined {
  const plain = title.replace(/^[*_\s]+/, "");
  const number = requirementTitle.exec(plain)?.[1];
  return number === undefined ? undefined : toDottedNumber(number);
}

/** A number such as "01.02" as links and ids spell it: "1.2". */
export function toDottedNumber(written: string): string {
  return written.includes("0") ? written.replace(/(^|\.)0+(?=\d)/g, "$1") : written;
}
