import { matchesOf } from "../../base/matches.ts";
import type { AcceptanceCriterion, EarsPattern } from "../../protocol/spec-block.ts";
import { joinSpace } from "./block-title.ts";

type Step = "given" | "when" | "outcome";

const stepWords: ReadonlyMap<string, Step> = new Map([
  ["given", "given"],
  ["给定", "given"],
  ["假设", "given"],
  ["前提", "given"],
  ["when", "when"],
  ["当", "when"],
  ["もし", "when"],
  ["then", "outcome"],
  ["那么", "outcome"],
  ["则", "outcome"],
  ["ならば", "outcome"],
  ["給定", "given"],
  ["假設", "given"],
  ["當", "when"],
  ["那麼", "outcome"],
  ["則", "outcome"],
  ["dado", "given"],
  ["dada", "given"],
  ["quando", "when"],
  ["cuando", "when"],
  ["então", "outcome"],
  ["entonces", "outcome"],
  ["étant donné", "given"],
  ["quand", "when"],
  ["alors", "outcome"],
]);
const words = [...stepWords.keys()].join("|");
/** A keyword in bold, anywhere in the text. */
const boldStep = new RegExp(`(?:\\*\\*|__) ?(${words}) ?[:：,，]? ?(?:\\*\\*|__)[:：,，]?`, "giu");
/** A plain keyword at the start of a clause: at the start of a line, after a comma or a stop. */
const plainStep = /(?:^|[,;.，；。\n]) ?\b(given|when|then)\b[:,]?/giu;
/** The part of a text that is searched for keywords. */
const maxLength = 8000;

/**
 * Parses a Given/When/Then text to a criterion; `undefined` if it has neither WHEN nor THEN.
 *
 * WHEN alone is `event_driven`. GIVEN names a state, so GIVEN alone is `state_driven`, and both are `complex`, with both in the
 * trigger. AND and BUT are part of the step before them.
 */
export function scenarioCriterion(text: string): AcceptanceCriterion | undefined {
  const head = text
    .slice(0, maxLength)
    .split(/\r\n|\n|\r/)
    .map(plainLine)
    .join("\n");
  const steps = stepsOf(head, boldStep) ?? stepsOf(head, plainStep);
  if (steps === undefined) return undefined;
  const { given, when } = steps;
  const trigger = given !== "" && when !== "" ? `given ${given}, when ${when}` : given || when;
  const pattern = given === "" ? "event_driven" : when === "" ? "state_driven" : "complex";
  return { pattern, trigger, response: steps.outcome };
}

function stepsOf(text: string, pattern: RegExp): Record<Step, string> | undefined {
  const marks = [...matchesOf(pattern, text)];
  const found: Record<Step, string[]> = { given: [], when: [], outcome: [] };
  for (const [index, mark] of marks.entries()) {
    const step = stepWords.get((mark[1] ?? "").toLowerCase());
    if (step === undefined) continue;
    found[step].push(clause(text.slice(mark.index + mark[0].length, marks[index + 1]?.index ?? text.length)));
  }
  if (found.when.length === 0 && found.outcome.length === 0) return undefined;
  const joined = (step: Step): string => found[step].filter((each) => each !== "").join(", ");
  return { given: joined("given"), when: joined("when"), outcome: joined("outcome") };
}

/** A line without its list mark, with its white space joined. */
function plainLine(line: string): string {
  return joinSpace(line).replace(/^(?:[-*+]|\d{1,9}[.)]) /, "");
}

/** The text of a step, without the bold marks of keywords and without commas at the ends. */
function clause(text: string): string {
  return text
    .replaceAll("\n", " ")
    .replace(/(?:\*\*|__)(and|but|or)(?:\*\*|__)/gi, "$1")
    .replace(/^ *[,，:：]* */, "")
    .replace(/ ?[,，]? *$/, "");
}

/** A classified criterion: `pattern` as in `EarsEntry`, `trigger` is "" if there is none. */
export interface EarsClassification extends AcceptanceCriterion {
  readonly pattern: EarsPattern | "unclassified";
}

/** The part of a sentence that is searched for keywords; the rest belongs to the response. */
const maxSentence = 4000;

const patternOfKeyword: Readonly<Record<string, EarsPattern>> = {
  when: "event_driven",
  whenever: "event_driven",
  upon: "event_driven",
  while: "state_driven",
  where: "optional_feature",
  if: "unwanted_behavior",
};

const boldKeyword =
  /(?:\*\*|__)((?:given|when|whenever|upon|while|where|if|then|the|shall|shall not|and)[,:]?)(?:\*\*|__)/gi;
const leadingKeyword =
  /^(?:\*\*|__)?(?:given\b.{0,400}?[,\s、，])?\b(when|whenever|upon|while|where|if)\b[\s,:、]*/i;
const furtherKeyword =
  /\b(?:WHEN|WHENEVER|WHILE|WHERE|IF)\b|[,、，]\s*(?:and\s+)?(?:when|whenever|while|where|if)\b/g;
const furtherAnyCase = /[,、，]\s*(?:and\s+)?(?:when|whenever|while|where|if)\b/gi;

/**
 * Classifies an acceptance criterion after EARS and splits it into trigger and response.
 *
 * The keywords can have any case and be in bold; THEN, a comma and the system's name, or SHALL mark where the response starts. A
 * sentence with none of the keywords (as in translated documents) is `unclassified`, its whole text the response. Never throws;
 * linear in the text.
 *
 * @see Mavin et al., "Easy Approach to Requirements Syntax (EARS)", RE 2009
 *
 * @example
 * ```ts
 * import { classifyCriterion } from "kit/specs";
 *
 * const { pattern } = classifyCriterion("WHEN the order is paid, THE SYSTEM SHALL send a receipt.");
 * console.log(pattern); // event_driven
 * ```
 */
export function classifyCriterion(text: string): EarsClassification {
  const sentence = plain(text);
  const head = sentence.slice(0, maxSentence);
  const lead = leadingKeyword.exec(head);
  if (lead === null) {
    const local = localCriterion(head);
    if (local !== undefined) return local;
    const pattern = /\bshall\b/i.test(head) ? "ubiquitous" : "unclassified";
    return { pattern, trigger: "", response: sentence };
  }
  const keyword = lead[1] ?? "";
  const start = responseStart(head, lead[0].length, keyword);
  const trigger = trimmed(head.slice(lead[0].length, start.at));
  const response = sentence.slice(start.at + start.skip).trim();
  const further = keyword === keyword.toUpperCase() ? furtherKeyword : furtherAnyCase;
  // The response can start with another condition: "WHILE a, WHEN b, THE system SHALL c".
  const isComplex = trigger.search(further) !== -1;
  const pattern = isComplex ? "complex" : (patternOfKeyword[keyword.toLowerCase()] ?? "event_driven");
  return { pattern, trigger, response };
}

const localKeyword =
  /^(?:(QUANDO|CUANDO|QUAND|LORSQUE|WENN)|(ENQUANTO|MIENTRAS|SOLANGE)|(ONDE|DONDE)|(SE|SI|FALLS))(?!\p{L})[\s,:]*/u;
const localThen = /[\s,]+(?:ENTÃO|ENTONCES|ALORS|DANN)(?!\p{L})[\s,:]*/u;

/** A statement with the keywords of EARS in Portuguese, Spanish, French or German, in capitals. */
function localCriterion(sentence: string): EarsClassification | undefined {
  const lead = localKeyword.exec(sentence);
  if (lead === null)
    return localStatement.test(sentence)
      ? { pattern: "ubiquitous", trigger: "", response: sentence }
      : undefined;
  const [keyword, event, state, feature] = lead;
  const pattern = event
    ? "event_driven"
    : state
      ? "state_driven"
      : feature
        ? "optional_feature"
        : "unwanted_behavior";
  const then = localThen.exec(sentence);
  const comma = sentence.indexOf(", ", keyword.length);
  const end = then?.index ?? (comma === -1 ? sentence.length : comma);
  const start = then === null ? end + 1 : end + then[0].length;
  return {
    pattern,
    trigger: trimmed(sentence.slice(keyword.length, end)),
    response: sentence.slice(start).trim(),
  };
}

/** Whether a text is an EARS statement in so many words: a keyword or a subject, and SHALL. */
export function isEarsStatement(text: string): boolean {
  const head = plain(text.slice(0, maxSentence)).replace(leadingLabel, "");
  if (localStatement.test(head)) return true;
  return statementStart.test(head) && /\bshall\b/i.test(head);
}

const statementStart = /^(?:given|when|whenever|upon|while|where|if|the|all|each|every)\b/i;
/** A name in bold before the statement: "**Performance:** The service shall …". */
const leadingLabel = /^(?:\*\*|__)[^*_]{1,80}(?:\*\*|__)\s*[:：–—-]?\s*/;
/** Portuguese, Spanish, French and German statements, which shout their keywords. */
const localStatement =
  /^(?:QUANDO|CUANDO|ENQUANTO|MIENTRAS|SE|SI|ONDE|DONDE|QUAND|LORSQUE|WENN|SOLANGE|O|A|Os|As|E[lL]|L[aAeE]|Los|Las|Les|D(?:er|ie|as|ER|IE|AS))\s.{0,1000}(?<!\p{L})(?:DEVE(?:RÁ|M)?|DEBE(?:RÁ|N)?|DOIT|DEVRA|MUSS|SOLL)(?!\p{L})/u;

/** The text in one line, without the bold markers of keywords; others (`src/**`) are the author's. */
function plain(text: string): string {
  const isBold = text.includes("**") || text.includes("__");
  const unmarked = isBold ? text.replace(boldKeyword, "$1") : text;
  const isSpread = unmarked.includes("  ") || unmarked.includes("\n") || unmarked.includes("\t");
  return (isSpread ? unmarked.replace(/\s+/g, " ") : unmarked).trim();
}

/** The offset where the response starts (`at`), and the characters of THEN before its text (`skip`). */
function responseStart(head: string, from: number, keyword: string): { at: number; skip: number } {
  const shouts = keyword === keyword.toUpperCase();
  const shall =
    indexOfMatch(head, shouts ? /\bSHALL\b/ : /\bshall\b/i, from) ?? indexOfMatch(head, /\bshall\b/i, from);
  const limit = shall ?? head.length;
  // In a sentence that shouts its keywords, a small "then" is an ordinary word.
  const then =
    indexOfMatch(head, /\bTHEN\b/, from) ?? (shouts ? undefined : indexOfMatch(head, /\bthen\b/i, from));
  if (then !== undefined && then < limit)
    return { at: then, skip: 4 + (/^[\s,:、，]*/.exec(head.slice(then + 4))?.[0].length ?? 0) };
  const subject = lastSubject(head.slice(from, limit), shouts);
  if (subject !== undefined) return { at: from + subject, skip: 0 };
  const comma = head.slice(from, limit).search(/[,、，](?=\s|[^\d\s])/);
  return comma === -1 ? { at: limit, skip: 0 } : { at: from + comma + 1, skip: 0 };
}

/** The offset of the system's name: "THE x" in capitals, or "the x" after the last comma. */
function lastSubject(clause: string, shouts: boolean): number | undefined {
  const afterComma = lastIndexOfMatch(clause, /[,、，]\s*(?=the\b)/gi);
  if (afterComma !== undefined) return afterComma;
  return shouts ? lastIndexOfMatch(clause, /\b(?=THE\b)/g) : undefined;
}

function indexOfMatch(text: string, pattern: RegExp, from: number): number | undefined {
  const index = text.slice(from).search(pattern);
  return index === -1 ? undefined : from + index;
}

function lastIndexOfMatch(text: string, pattern: RegExp): number | undefined {
  let last: number | undefined;
  for (const match of text.matchAll(pattern)) last = match.index + match[0].length;
  return last;
}

function trimmed(trigger: string): string {
  return trigger.replace(/^[\s,:、，]+|[\s,:、，]+$/g, "");
}
