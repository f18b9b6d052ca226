import { expect, test } from "vitest";
import { hasCorpus, loadCorpus } from "../../testing/corpus.ts";
import { tickTask } from "../model/tick-task.ts";
import { createSpecRegistry } from "../registry.ts";

const registry = createSpecRegistry();

test.skipIf(!hasCorpus)(
  "each open task of real repositories is ticked by one character, and reads back as done",
  { timeout: 120_000 },
  () => {
    let count = 0;
    for (const { files } of loadCorpus()) {
      for (const { path, text } of files) {
        const adapter = registry.adapterFor(path);
        const tasks =
          adapter?.parse({ path, text }).drafts.filter(({ spec_type }) => spec_type === "task") ?? [];
        for (const [index, { span, framework, metadata }] of tasks.entries()) {
          if (metadata.status === "done") continue;
          count += 1;
          const ticked = tickTask(text, { line: span.start_line, framework });
          let different = 0;
          for (let at = 0; at < text.length; at += 1) if (text[at] !== ticked[at]) different += 1;
          expect([path, different, ticked.length]).toEqual([path, 1, text.length]);
          const again = adapter
            ?.parse({ path, text: ticked })
            .drafts.filter(({ spec_type }) => spec_type === "task");
          expect([path, again?.length, again?.[index]?.metadata.status]).toEqual([
            path,
            tasks.length,
            "done",
          ]);
        }
      }
    }
    expect(count).toBeGreaterThan(500);
  },
);
