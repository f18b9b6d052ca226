import { perObject } from "../../base/remember.ts";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import { splitOutsideBraces } from "../../specs/markdown/characters.ts";
import { lineKinds, lineText, type MarkdownScan, scanMarkdown } from "../../specs/markdown/scan-markdown.ts";
import type { GuidelineRecord } from "../guideline-record.ts";
import { type LintProject, quoteText, warningAbout } from "./finding.ts";

/** The demand of a sentence. Two answers to one topic exclude each other. */
interface Demand {
  readonly topic: string;
  readonly answer: string;
  readonly sentence: string;
  readonly line: number;
  readonly record: GuidelineRecord;
}

/**
 * Pairs of sentences of two sources that contradict each other: `Use tabs.` and `Use two spaces.`, `Always commit lock files.` and
 * `Never commit lock files.`. Both must apply to the same files, and a sentence counts only if it is nothing but the demand:
 * what has a condition is no contradiction. Each topic is reported once per pair of files.
 */
export function findContradictions(records: readonly GuidelineRecord[], project: LintProject): Diagnostic[] {
  const byAudience = Map.groupBy(
    records.filter(({ managed, source_type }) => managed === undefined && source_type !== "sample"),
    audienceOf,
  );
  const audiences = [...byAudience.values()].filter((audience) => audience.some(project.isAsked));
  return audiences.flatMap((audience) => {
    const demands = audience.flatMap((record) => demandsOf(record, project.scanOf(record.source_file)));
    return [...Map.groupBy(demands, ({ topic }) => topic).values()].flatMap(contradictionsAmong);
  });
}

const audienceOf = perObject(({ scope, inclusion, globs }: GuidelineRecord) =>
  JSON.stringify([scope, inclusion === "pattern" ? globs.toSorted() : inclusion === "manual"]),
);

function contradictionsAmong(demands: readonly Demand[]): Diagnostic[] {
  const reported = new Set<string>();
  return demands.flatMap((demand, index) => {
    const rival = demands.slice(0, Math.min(index, 50)).find((one) => contradicts(one, demand));
    if (rival === undefined) return [];
    const path = rival.record.source_file;
    if (reported.has(`${path}\n${demand.record.source_file}`)) return [];
    reported.add(`${path}\n${demand.record.source_file}`);
    const message = `"${quoteText(demand.sentence)}" contradicts "${quoteText(rival.sentence)}" in ${path}:${rival.line}.`;
    const found = { rule: "contradiction", code: "opposite_rules", message } as const;
    const other = { path, line: rival.line };
    return [warningAbout(demand.record, { ...found, other }, { line: demand.line })];
  });
}

function contradicts(one: Demand, other: Demand): boolean {
  if (one.record.source_file === other.record.source_file || one.answer === other.answer) return false;
  // "Use spaces" leaves open how many.
  return (
    !(one.answer === "spaces" && other.answer.endsWith(" spaces")) &&
    !(other.answer === "spaces" && one.answer.endsWith(" spaces"))
  );
}

/** Words that limit a rule to a part of the code; a section about a language speaks of nothing else. */
const languages =
  /\b(?:python|typescript|javascript|java|kotlin|swift|go|golang|rust|ruby|php|c#|c\+\+|css|scss|html|sql|yaml|json|markdown|shell|bash|makefiles?|tests?|testing|frontend|backend|commits?)\b/i;

function demandsOf(record: GuidelineRecord, fileScan: MarkdownScan | undefined): Demand[] {
  if (languages.test(record.title)) return [];
  const scan = fileScan ?? scanMarkdown(record.content);
  const { start_line, end_line } =
    fileScan === undefined ? { start_line: 1, end_line: scan.lineCount } : record.span;
  const demands: Demand[] = [];
  let isLimited = false;
  const headings = new Map(scan.headings.map((heading) => [heading.line, heading.title]));
  for (
    let line = Math.max(start_line, scan.bodyLine);
    line <= Math.min(end_line, scan.lineCount);
    line += 1
  ) {
    const heading = headings.get(line);
    if (heading !== undefined) isLimited = languages.test(heading);
    const text = lineText(scan, line);
    // A line that leads into a list, a table and a quotation are no sentences of their own.
    if (heading !== undefined || isLimited || scan.kinds[line - 1] !== lineKinds.prose) continue;
    if (text.length > 300 || /^\s*[|>]/.test(text) || /[❌✗✘🚫✅✓]/u.test(text)) continue;
    for (const sentence of sentencesOf(text)) {
      const demand = demandOf(sentence);
      const place = fileScan === undefined ? record.span.start_line : line;
      if (demand !== undefined) demands.push({ ...demand, sentence, line: place, record });
    }
  }
  return demands;
}

function sentencesOf(line: string): string[] {
  return line
    .replace(/^\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?/, "")
    .replace(/[*_]{2}/g, "")
    .split(/[.;!]+(?:\s+|$)/)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== "" && !sentence.endsWith(":"));
}

const numbers: Readonly<Record<string, string>> = { two: "2", three: "3", four: "4", eight: "8" };
const polite = "(?:always |please |prefer |must )?";
const indentation = new RegExp(
  `^${polite}(?:use |using |indent (?:code )?with |indentation: ?)?(tabs|spaces|(?:2|3|4|8|two|three|four|eight)[- ]spaces?)(?: (?:for|as) (?:the )?(?:indentation|indents?|indenting)|, (?:not|never) (?:tabs|spaces)| instead of (?:tabs|spaces))?$`,
);
const quotes = new RegExp(
  `^${polite}(?:use )?(single|double) quotes(?: (?:for|around) strings?| for (?:all )?string literals)?$`,
);
const manager = new RegExp(
  `^${polite}use \`?(npm|pnpm|yarn|bun)\`?(?: (?:as (?:the|your) package manager|for (?:all )?(?:package management|dependencies|installing (?:packages|dependencies))|, (?:not|never) \`?(?:npm|pnpm|yarn|bun)\`?| instead of \`?(?:npm|pnpm|yarn|bun)\`?)|, (?:not|never) \`?(?:npm|pnpm|yarn|bun)\`?)?$`,
);
const width =
  /^(?:(?:the )?(?:max(?:imum)?\.? )?line (?:length|width)(?: is| of)?:? ?|limit lines to |keep lines (?:under|below|within) )(\d{2,3})(?: characters| columns| chars)?$/;

/** The topic and the answer of a sentence that is nothing but a demand. */
function demandOf(sentence: string): Pick<Demand, "topic" | "answer"> | undefined {
  const text = sentence.toLowerCase().replace(/[’]/g, "'").replace(/\s+/g, " ");
  const indent = indentation
    .exec(text)?.[1]
    ?.replace("-", " ")
    .replace(/space$/, "spaces");
  if (indent !== undefined)
    return { topic: "indentation", answer: indent.replace(/^[a-z]+(?= )/, (word) => numbers[word] ?? word) };
  for (const [topic, form] of [
    ["quotes", quotes],
    ["package manager", manager],
    ["line length", width],
  ] as const) {
    const answer = form.exec(text)?.[1];
    if (answer !== undefined) return { topic, answer };
  }
  return orderOf(text);
}

const forbids =
  /^(?:you )?(?:must never|must not|mustn't|never|do not|don't|should not|shouldn't|avoid) (.+)$/;
const orders = /^(?:you )?(?:must always|must|always|do|prefer|should always|should) (.+)$/;
const verbs: Readonly<Record<string, string>> = {
  using: "use",
  writing: "write",
  adding: "add",
  creating: "create",
  committing: "commit",
  importing: "import",
  exporting: "export",
  running: "run",
  editing: "edit",
  modifying: "modify",
  putting: "put",
};
/** Words that make an order depend on something that the other sentence can exclude. */
const conditional =
  /\b(?:if|unless|when|whenever|where|while|except|only|until|before|after|without|just|too|more|than|this|that|these|those|it|them|over|instead)\b/;

/** "Never use default exports": the topic is what is done, the answer whether to do it. */
function orderOf(text: string): Pick<Demand, "topic" | "answer"> | undefined {
  const no = forbids.exec(text)?.[1];
  const yes =
    no === undefined ? (orders.exec(text)?.[1] ?? (text.startsWith("use ") ? text : undefined)) : undefined;
  const deed = no ?? yes;
  if (deed === undefined || conditional.test(deed)) return undefined;
  const words = deed.split(" ").map((word, index) => (index === 0 ? (verbs[word] ?? word) : word));
  const isNoun = /^(?:avoid|prefer) /.test(text) && verbs[deed.split(" ")[0] ?? ""] === undefined;
  const topic = [...(isNoun ? ["use"] : []), ...words].filter((word) => !/^(?:the|a|an|any)$/.test(word));
  // One word says too little, and a list can overlap in a part only.
  if (topic.length < 2 || topic.length > 10 || splitOutsideBraces(deed).length > 1) return undefined;
  return { topic: topic.join(" "), answer: no === undefined ? "yes" : "no" };
}
