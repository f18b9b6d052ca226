import { describe, test } from "vitest";
import { checkCase, everyCommand, loadInOwnProcess } from "./security/check-markdown.suite.ts";
import { isForThisSystem } from "./security/corpus.ts";
import { readMarkdownCases } from "./security/markdown-case.ts";

describe("hostile Markdown, each case in a separate process", () => {
  for (const markdownCase of readMarkdownCases().cases) {
    const { id, why } = markdownCase;
    test.skipIf(!isForThisSystem(markdownCase))(`${id} ${why}`, () =>
      checkCase(markdownCase, { load: loadInOwnProcess, commands: everyCommand }),
    );
  }
});
