import type { DraftLink } from "../../adapter.ts";
import { lineKinds, lineText, type MarkdownScan, textOfLines } from "../../markdown/scan-markdown.ts";
import type { LineRange } from "../../task-list.ts";
import { toDottedNumber } from "./dotted-number.ts";
import { requirementId } from "./kiro-path.ts";

/** One requirement that a line names, and the criterion inside it. */
export interface RequirementReference {
  readonly requirement: string;
  readonly criterion?: string;
}

const words = "(?:Requirements?|Reqs?|要件|需求|要求|요구 ?사항)";
const implementsLabel = new RegExp(`(?:^|[_*])${words}[*_]{0,2}\\s*[:：]\\s*(.*)$`, "i");
const validatesLabel = new RegExp(
  `(?<![a-z])Validates(?:\\s*[:：*_]+\\s*(?:${words}(?![a-z]))?|\\s+${words}(?![a-z]))\\s*[:：]?(.*)$`,
  "i",
);
/** What every label has; most sections and lines have none of it, and are done with at once. */
const mayHaveLabel = /[Rr]eq|REQ|[Vv]alidates|要件|需求|要求|요구/;
const bulletBefore = /^\s*(?:[-*+]\s+)?/;

/** A number or a range of two, behind a word such as "Requirement" or "US-" or none; not `issues/61`. */
const numbered =
  /(?<![/#.\d])(?:([A-Za-z]{1,20})[-_ ]?)?(\d+(?:\.\d+)*)(?:\s*[-–—~〜]\s*(?:[A-Za-z]{1,20}[-_ ]?)?(\d+(?:\.\d+)*)(?![.\d]|\s*[-–—~〜]\s*\d))?/g;
const knownWords = /^(?:requirements?|reqs?|us|fr|r|ac|to|and|story)$/i;
/** A range longer than this is taken for its two ends. */
const longestRange = 200;
/** A line that names more is read up to here; a few ranges could name millions. */
const maxReferences = 1000;

/**
 * The requirements that lines name explicitly: `_Requirements: 1.1, 2.3_` (also in Japanese and
 * Chinese) gives links of the kind `implements`, `Validates: Requirements 1.1` of the kind `validates`.
 */
export function requirementLinks(
  scan: MarkdownScan,
  ranges: readonly LineRange[],
  feature: string,
): DraftLink[] {
  const links = new Map<string, DraftLink>();
  for (const { from, to } of ranges) {
    if (!mayHaveLabel.test(textOfLines(scan, from, to))) continue;
    for (let line = from; line <= to; line += 1) {
      if (scan.kinds[line - 1] !== lineKinds.prose) continue;
      const text = lineText(scan, line).slice(0, 4000);
      const label = mayHaveLabel.test(text) ? labelOf(text) : undefined;
      if (label === undefined) continue;
      for (const { requirement, criterion } of referencesIn(label.rest)) {
        const target = requirementId(feature, requirement);
        const key = `${label.kind} ${target} ${criterion ?? ""}`;
        if (links.has(key)) continue;
        links.set(key, { kind: label.kind, target, ...(criterion === undefined ? {} : { criterion }), line });
      }
    }
  }
  return [...links.values()];
}

function labelOf(text: string): { kind: "implements" | "validates"; rest: string } | undefined {
  const validates = text.includes("alidates") ? validatesLabel.exec(text) : null;
  if (validates !== null) return { kind: "validates", rest: validates[1] ?? "" };
  const named = implementsLabel.exec(text.replace(bulletBefore, ""));
  return named === null ? undefined : { kind: "implements", rest: named[1] ?? "" };
}

/** The numbers in a list such as "1.1, 2.3", "Requirement 1, Requirement 4" or "4.1–4.8". */
export function referencesIn(list: string): RequirementReference[] {
  const references: RequirementReference[] = [];
  for (const [, word, first = "", last] of list.matchAll(numbered)) {
    if (word !== undefined && !knownWords.test(word)) continue;
    if (references.length > maxReferences) break;
    for (const number of last === undefined ? [first] : rangeOf(first, last)) {
      const criterion = toDottedNumber(number);
      const dot = criterion.indexOf(".");
      references.push(
        dot === -1 ? { requirement: criterion } : { requirement: criterion.slice(0, dot), criterion },
      );
    }
  }
  return references;
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
