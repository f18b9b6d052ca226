import { beforeAll, describe, test } from "vitest";
import { checkCase, everyCommand, loadInOwnProcess } from "./security/check-markdown.suite.ts";
import { isForThisSystem } from "./security/corpus.ts";
import { loadCase, warmUp } from "./security/load-case.ts";
import { type MarkdownCase, readMarkdownCases } from "./security/markdown-case.ts";

// The campaign measures every case in a separate process: `security-markdown.campaign.test.ts`.
describe("hostile Markdown", () => {
  beforeAll(warmUp);
  for (const markdownCase of readMarkdownCases().cases.map(sliceOf)) {
    const { id, why, expected } = markdownCase;
    const load = expected.max_rss_growth_mb === undefined ? loadCase : loadInOwnProcess;
    test.skipIf(!isForThisSystem(markdownCase))(`${id} ${why}`, () =>
      checkCase(markdownCase, { load, commands: everyCommand }),
    );
  }
});

/** A case with very many headings, reduced to a tenth of the headings and half of the time limit. */
function sliceOf(markdownCase: MarkdownCase): MarkdownCase {
  const { content_gen: content, expected, why } = markdownCase;
  const { heading_count: count, max_ms: ms = 2_000 } = expected;
  if (count === undefined || typeof content !== "object" || !("repeat" in content)) return markdownCase;
  const tenth = { content_gen: { ...content, times: content.times / 10 }, why: `a tenth of ${why}` };
  return { ...markdownCase, ...tenth, expected: { ...expected, heading_count: count / 10, max_ms: ms / 2 } };
}
