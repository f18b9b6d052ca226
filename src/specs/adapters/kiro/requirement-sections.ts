import { type Heading, lineKinds, lineText, type MarkdownScan } from "../../markdown/scan-markdown.ts";
import { isEarsStatement } from "../../model/scenario.ts";
import { toDottedNumber } from "./kiro-document.ts";

/** A section of a requirements.md that becomes a block: its heading, its own number, the lines below it. */
export interface RequirementSection {
  readonly heading: Heading;
  readonly number: string | undefined;
  /**
   * `shared`: a chapter of acceptance criteria of no single requirement. `constraint`: limits of all requirements. `list`:
   * statements with codes but without headings.
   */
  readonly kind: "requirement" | "shared" | "constraint" | "list";
  readonly from: number;
  readonly to: number;
}

export interface RequirementSections {
  readonly sections: readonly RequirementSection[];
  /** Headings of stories and criteria that are part of the section of the previous heading of their level. */
  readonly parts: ReadonlySet<Heading>;
}

/** Headings that decide where a section ends. */
interface SectionEdges {
  readonly starts: ReadonlySet<Heading>;
  readonly parts: ReadonlySet<Heading>;
}

/**
 * The requirement sections of a document: headings with a requirement number in any language, and, outside of those, headings
 * with acceptance criteria below them. A section ends before the next requirement and before the next heading of the same or a
 * higher level.
 */
export function requirementSections(scan: MarkdownScan): RequirementSections {
  const numbers = new Map<Heading, string>();
  for (const heading of scan.headings) {
    const number = requirementNumber(heading.title);
    if (number !== undefined) numbers.set(heading, number);
  }
  const { owners, parts } = findOwners(scan, numbers);
  const starts = new Set([...numbers.keys(), ...owners]);
  const sections = scan.headings.flatMap((heading, index): RequirementSection[] => {
    if (!starts.has(heading)) return [];
    const number = numbers.get(heading) ?? leadingNumber(heading.title);
    const kind = number === undefined && isAcceptanceTitle(heading.title) ? "shared" : "requirement";
    return [
      { heading, number, kind, from: heading.end_line + 1, to: lastLineOf(scan, index, { starts, parts }) },
    ];
  });
  return { sections, parts };
}

/** The last line of the section that a heading opens. */
export function lastLineOf(scan: MarkdownScan, index: number, { starts, parts }: SectionEdges): number {
  const level = scan.headings[index]?.level ?? 1;
  for (let at = index + 1; at < scan.headings.length; at += 1) {
    const next = scan.headings[at];
    if (next === undefined) break;
    const closes = next.level < level || (next.level === level && !parts.has(next));
    if (closes || starts.has(next)) return next.line - 1;
  }
  return scan.lineCount;
}

/**
 * Finds unnumbered requirements: the headings directly above acceptance criteria that are in no numbered requirement. Criteria
 * after all requirements of their chapter belong to their own heading ("Acceptance Criteria").
 */
function findOwners(
  scan: MarkdownScan,
  numbers: ReadonlyMap<Heading, string>,
): { owners: ReadonlySet<Heading>; parts: ReadonlySet<Heading> } {
  const owners = new Set<Heading>();
  const parts = new Set<Heading>();
  const isAcceptance = (heading: Heading): boolean =>
    !numbers.has(heading) && isAcceptanceTitle(heading.title);
  const acceptancesOfLevel = countLevels(scan.headings.filter(isAcceptance));
  /** The headings around the current line, outermost first. */
  const path: Heading[] = [];
  /** The headings in the path that have criteria, or a story, so far. */
  const withCriteria = new Set<Heading>();
  const withStory = new Set<Heading>();
  /** The line of the last requirement; a heading above it is around it, not one itself. */
  let last = 0;
  const addOwner = (label?: Heading): void => {
    const parent = path.at(-1);
    for (const heading of path) withCriteria.add(heading);
    if (path.some((one) => numbers.has(one) || isConstraintChapter(one.title))) return;
    if (parent !== undefined && owners.has(parent)) return;
    // A numbered chapter is part of the document, so it does not describe the document's title.
    const isChapter = parent?.level === 1 && label !== undefined && chapterNumber(label.title) !== undefined;
    const owner = parent !== undefined && parent.line > last && !isChapter ? parent : label;
    if (owner === undefined) return;
    owners.add(owner);
    last = owner.line;
  };
  /** Whether a heading of criteria or of a story describes the previous heading of its level. */
  const isAbout = (part: Heading, owner: Heading): boolean => {
    if (isStoryTitle(part.title)) return numbers.has(owner) || !/(?:ies|s)\W*$/i.test(part.title);
    if (withCriteria.has(owner) || isConstraintChapter(owner.title)) return false;
    if (chapterNumber(part.title) !== undefined && !numbers.has(owner)) return false;
    return numbers.has(owner) || withStory.has(owner) || (acceptancesOfLevel.get(part.level) ?? 0) > 1;
  };
  let index = 0;
  for (let line = 1; line <= scan.lineCount; line += 1) {
    const heading = scan.headings[index]?.line === line ? scan.headings[index] : undefined;
    if (heading === undefined) {
      if (scan.kinds[line - 1] !== lineKinds.prose) continue;
      const text = lineText(scan, line);
      if (isAcceptanceLine(text)) addOwner();
      else if (isStatementItem(text)) {
        const owner = path.at(-1);
        if (owner !== undefined && !numbers.has(owner)) withCriteria.add(owner);
      } else if (storyBehindLabel(text) !== undefined || isStorySentence(text)) {
        for (const one of path) withStory.add(one);
      }
      continue;
    }
    while ((path.at(-1)?.level ?? 0) > heading.level) path.pop();
    const isPart = isAcceptance(heading) || (isStoryTitle(heading.title) && !numbers.has(heading));
    const before = path.at(-1);
    if (before?.level === heading.level) {
      if (isPart && isAbout(heading, before)) parts.add(heading);
      else path.pop();
    }
    if (isStoryTitle(heading.title)) for (const one of path) withStory.add(one);
    if (isAcceptance(heading)) addOwner(heading);
    else if (!isPart) path.push(heading);
    if (numbers.has(heading) || isConstraintChapter(heading.title)) last = line;
    index += 1;
    line = heading.end_line;
  }
  return { owners, parts };
}

const listMark = /^[ \t]*(?:[-*+]|\d{1,4}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?/;

/** Whether a line is a list item that states a requirement in EARS. */
export function isStatementItem(line: string): boolean {
  const mark = listMark.exec(line)?.[0].length;
  return mark !== undefined && isEarsStatement(line.slice(mark));
}

function countLevels(headings: readonly Heading[]): Map<number, number> {
  const counts = new Map<number, number>();
  for (const { level } of headings) counts.set(level, (counts.get(level) ?? 0) + 1);
  return counts;
}

/** "2. Login" and "1.3 Logout" number a requirement as well as "Requirement 2" does. */
function leadingNumber(title: string): string | undefined {
  return isAcceptanceTitle(title) ? undefined : chapterNumber(title);
}

/** The number in front of a title: "2" of "2. Orders". */
export function chapterNumber(title: string): string | undefined {
  return /^(\d+(?:\.\d+)*)[.):]?\s/.exec(title)?.[1];
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

/** Whether a line consists of an acceptance label, such as `**Acceptance Criteria:**`. */
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

/**
 * Whether a title consists of the name of such a section: "4. Non-Functional Requirements", not "Rate limit constraints in v2".
 */
function isConstraintChapter(title: string): boolean {
  return constraintChapter.test(title) && !/(?<!non[- ]?)\bfunctional\b/i.test(title);
}

/** Whether a heading only announces a user story. */
export function isStoryTitle(title: string): boolean {
  return storyTitle.test(title);
}

/** The text after a user story label on its line (can be ""); `undefined` without a label. */
export function storyBehindLabel(line: string): string | undefined {
  return storyLine.exec(line.trim())?.[1];
}

const sentenceStart =
  /^(?:[-*+>]\s+)*["“«]?(?:\*\*|__|[*_])?(?:as an?|as the|como(?: un[ao]?)?|als|en tant qu[e’']|come|jako|作为|作為|身为|як|как|bir)(?:\*\*|__|[*_])?[\s\p{L}“"']/iu;
const japaneseStory = /^(?:[-*+>]\s+)*.{1,60}(?:として|로서|으로서)[、,]?/u;
const wish =
  /\b(?:i(?:['’]d| would)? (?:want|need|like|can|expect|should be able)|we (?:want|need)|quiero|quero|queremos|desejo|deseo|necesito|preciso|gostaria|möchte|will ich|brauche|je (?:veux|souhaite|voudrais)|voglio|chcę)\b|我(?:们)?(?:想|希望|要|需要|能)|(?:し|が|で|せ|り|き|み|え|べ)?たい|できるように|하고 ?싶|хочу|хочем|أريد/iu;

/** Whether the words of a paragraph make it a user story: "As a clerk, I want …, so that …". */
export function isStorySentence(text: string): boolean {
  const head = text.slice(0, 600);
  if (!sentenceStart.test(head) && !japaneseStory.test(head)) return false;
  return wish.test(head.replace(/[*_]/g, ""));
}

/** The number in a title such as "Requirement 3: Login", "要件2：x", "US-012"; leading zeros are removed. */
export function requirementNumber(title: string): string | undefined {
  const plain = title.replace(/^[*_\s]+/, "");
  const number = requirementTitle.exec(plain)?.[1];
  return number === undefined ? undefined : toDottedNumber(number);
}
