import type { CriterionTest } from "../../protocol/coverage.ts";
import type { AppliedGuideline, Explanation } from "../../protocol/guideline-query.ts";
import type { Criterion } from "../../specs/coverage/list-criteria.ts";
import { safeLine } from "../text/safe-text.ts";

/** Entries of one list; an editor shows a hover in a small window. */
const mostEntries = 30;

/** Markdown that shows a text of the repository as it is: no links, no HTML, no control characters. */
export function plain(text: string): string {
  return safeLine(text).replace(/[\\`*_{}[\]<>()#+\-.!|~&@:]/g, "\\$&");
}

/** The text of a criterion, its tests, and the last result of each. */
export function criterionText({ id, text }: Criterion, tests: readonly CriterionTest[]): string {
  const head = `**${plain(id)}** ${plain(text)}`;
  return `${head}\n\n${tests.length === 0 ? "No test names it." : entries(tests.map(testText))}`;
}

function testText({ path, line, titles, result, stale }: CriterionTest): string {
  const title = titles?.[0] === undefined ? "" : ` “${plain(titles[0])}”`;
  return `${plain(`${path}:${line}`)}${title}: ${resultText(result)}${stale === undefined ? "" : ", older than the last change"}`;
}

function resultText(result: CriterionTest["result"]): string {
  if (result === undefined) return "no result";
  return `**${result.status}** ${plain(result.recorded_at.slice(0, 16).replace("T", " "))} UTC`;
}

/** Which guidelines apply to a file and why; empty for a file without any. */
export function rulesText({ applied, tokens, file }: Explanation, toolOf: (id: string) => string): string {
  const rules = applied.filter(({ guideline }) => !guideline.is_sample);
  if (rules.length === 0) return "";
  const tools = Map.groupBy(rules, ({ guideline }) => toolOf(guideline.id));
  const lists = [...tools].map(([tool, list]) => `${plain(tool)}\n\n${entries(list.map(ruleText))}`);
  const head = `**${rules.length} ${rules.length === 1 ? "rule applies" : "rules apply"} to ${plain(file)}** (about ${tokens} tokens)`;
  return [head, ...lists].join("\n\n");
}

const reasons: Readonly<Record<AppliedGuideline["reason"], string>> = {
  always: "always",
  pattern: "by its glob",
  nested: "its folder",
  import: "imported by",
  manual: "when a person names it",
  auto: "when the agent asks for it",
};

function ruleText({ guideline, line, reason, detail, via }: AppliedGuideline): string {
  const why = [reasons[reason], ...(detail === undefined ? [] : [plain(detail)])].join(" ");
  return `${plain(guideline.title)} (${plain(`${via ?? guideline.source_file}:${line}`)}): ${why}`;
}

function entries(texts: readonly string[]): string {
  const rest = texts.length - mostEntries;
  const listed = rest > 0 ? [...texts.slice(0, mostEntries), `and ${rest} more`] : texts;
  return listed.map((text) => `- ${text}`).join("\n");
}
