import { toDottedNumber } from "./dotted-number.ts";

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
  "crit[eé]rios de aceita[cç][aã]o",
  "критерии при[её]мки",
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
  "historia de usuario",
  "hist[oó]ria de usu[aá]rio",
  "пользовательская история",
].join("|");

const requirementWords =
  "requirements?|要件|需求|要求|요구 ?사항|anforderung|exigence|requisito|requerimiento|требование";

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
  `^(?:(?:${requirementWords})\\s*[-#]?\\s*|(?:US|REQ|FR|BR)[-_ ]?|(?:user )?story\\s+|R(?=\\d+(?:\\.\\d+)*\\s*[:：]))(\\d+(?:\\.\\d+)*)(?!\\.?\\d)`,
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

/** Whether a heading says nothing but that a user story follows. */
export function isStoryTitle(title: string): boolean {
  return storyTitle.test(title);
}

/** The text behind a user story label on its line (perhaps ""), or nothing where there is no label. */
export function storyBehindLabel(line: string): string | undefined {
  return storyLine.exec(line.trim())?.[1];
}

/** The number in a title such as "Requirement 3: Login", "要件2：x", "US-012"; leading zeros go. */
export function requirementNumber(title: string): string | undefined {
  const plain = title.replace(/^[*_\s]+/, "");
  const number = requirementTitle.exec(plain)?.[1];
  return number === undefined ? undefined : toDottedNumber(number);
}
