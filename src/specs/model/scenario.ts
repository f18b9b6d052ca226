import type { AcceptanceCriterion } from "../../protocol/spec-block.ts";
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
/** A plain keyword, where a clause starts: at the start of a line, behind a comma or a stop. */
const plainStep = /(?:^|[,;.，；。\n]) ?\b(given|when|then)\b[:,]?/giu;
/** The part of a text that is searched for keywords. */
const maxLength = 8000;

/**
 * A Given/When/Then text as a criterion, undefined where it has neither WHEN nor THEN.
 *
 * WHEN alone is `event_driven`. GIVEN names a state, so GIVEN alone is `state_driven`, and both
 * are `complex`, with both in the trigger. AND and BUT belong to the step before them.
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
  const marks = [...text.matchAll(pattern)];
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

/** The words of a step, without the bold marks of keywords, and without commas at its ends. */
function clause(text: string): string {
  return text
    .replaceAll("\n", " ")
    .replace(/(?:\*\*|__)(and|but|or)(?:\*\*|__)/gi, "$1")
    .replace(/^ *[,，:：]* */, "")
    .replace(/ ?[,，]? *$/, "");
}
