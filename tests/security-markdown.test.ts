import { beforeAll, describe, test } from "vitest";
import { checkCase, everyCommand, loadInOwnProcess } from "./security/check-markdown.suite.ts";
import { isForThisSystem } from "./security/corpus.ts";
import { loadCase, warmUp } from "./security/load-case.ts";
import { readMarkdownCases } from "./security/markdown-case.ts";

// The campaign measures every case in a process of its own: `security-markdown.campaign.test.ts`.
describe("hostile Markdown", () => {
  beforeAll(warmUp);
  for (const markdownCase of readMarkdownCases().cases) {
    const { id, why, expected } = markdownCase;
    const load = expected.max_rss_growth_mb === undefined ? loadCase : loadInOwnProcess;
    // What is only large is indexed once less by each command that is left out.
    const commands = markdownCase.class === "size" ? ["guidelines list"] : everyCommand;
    test.skipIf(!isForThisSystem(markdownCase))(`${id} ${why}`, () =>
      checkCase(markdownCase, { load, commands }),
    );
  }
});
