import type { LinkedBlock } from "../../project/features/open-blocks.ts";
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
  if (tests.length === 0) return `${head}\n\nNo test names it.`;
  return `${head}\n\n${testsTitle(tests)}\n\n${entries(tests.map(testText))}`;
}

function testText({ path, line, titles, result, stale }: CriterionTest): string {
  const title = titles?.[0] === undefined ? "" : ` “${plain(titles[0])}”`;
  return `${plain(`${path}:${line}`)}${title}: ${resultText(result)}${stale === undefined ? "" : `, ${older}`}`;
}

function resultText(result: CriterionTest["result"]): string {
  if (result === undefined) return "no result";
  return `**${result.status}** ${plain(result.recorded_at.slice(0, 16).replace("T", " "))} UTC`;
}

/** How many criteria of a block have tests, and the blocks that it links to or that link to it; empty for neither. */
export function blockText({ title, criteria, linked }: BlockFacts): string {
  const facts = blockTitle({ criteria, linked });
  if (facts === "") return "";
  const list = linked.map((block) => `${plain(block.title)} (${plain(`${block.path}:${block.line}`)})`);
  return [`**${plain(title)}**: ${facts}`, ...(list.length > 0 ? [entries(list)] : [])].join("\n\n");
}

/** The facts about a block, for its hover and its lens. */
export interface BlockFacts {
  readonly title: string;
  /** For each criterion of the block, the number of its tests. */
  readonly criteria: readonly number[];
  readonly linked: readonly LinkedBlock[];
}

/** `2 of 7 criteria have tests, 1 design, 3 tasks`. */
export function blockTitle({ criteria, linked }: Omit<BlockFacts, "title">): string {
  const types = Map.groupBy(linked, ({ spec_type }) => spec_type);
  const tested = criteria.filter((tests) => tests > 0).length;
  return [
    ...(criteria.length > 0
      ? [`${tested} of ${counted(criteria.length, "criterion", "criteria")} with tests`]
      : []),
    ...[...types].sort(([a], [b]) => (a < b ? -1 : 1)).map(([type, { length }]) => counted(length, type)),
  ].join(", ");
}

/** `2 tests: 1 passed, 1 without a result, 1 older than the last change`. */
export function testsTitle(tests: readonly CriterionTest[]): string {
  const states = Map.groupBy(tests, ({ result }) => result?.status ?? "without a result");
  const parts = [...states].map(([state, { length }]) => (tests.length === 1 ? state : `${length} ${state}`));
  const stale = tests.filter((each) => each.stale !== undefined).length;
  if (stale > 0) parts.push(tests.length === 1 ? older : `${stale} ${older}`);
  return `${counted(tests.length, "test")}: ${parts.join(", ")}`;
}

/** `3 rules apply`; empty for none. */
export function rulesTitle(explanation: Explanation): string {
  const { length } = rulesOf(explanation);
  return length === 0 ? "" : `${length} ${length === 1 ? "rule applies" : "rules apply"}`;
}

/** The guidelines that apply, without kit's samples. */
export function rulesOf({ applied }: Explanation): readonly AppliedGuideline[] {
  return applied.filter(({ guideline }) => !guideline.is_sample);
}

const older = "older than the last change";

function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** Which guidelines apply to a file and why; empty for a file without any. */
export function rulesText(explanation: Explanation, toolOf: (id: string) => string): string {
  const { tokens, file } = explanation;
  const rules = rulesOf(explanation);
  if (rules.length === 0) return "";
  const tools = Map.groupBy(rules, ({ guideline }) => toolOf(guideline.id));
  const lists = [...tools].map(([tool, list]) => `${plain(tool)}\n\n${entries(list.map(ruleText))}`);
  const head = `**${rulesTitle(explanation)} to ${plain(file)}** (about ${tokens} tokens)`;
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
