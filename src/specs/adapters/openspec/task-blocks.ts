import type { SpecDraft } from "../../adapter.ts";
import type { MarkdownScan } from "../../markdown/scan-markdown.ts";
import { blockTitle } from "../../model/block-title.ts";
import { slugOf } from "../../model/slug.ts";
import { detailText, taskItemsIn } from "../../model/task-list.ts";
import { taskStatusOf } from "../../model/task-status.ts";
import { toDraft } from "./draft.ts";
import type { OpenspecDocument } from "./openspec-path.ts";

const taskNumber = /^(\d+(?:\.\d+)*)[.)]?(?=\s)/;

/** Each checkbox of a change's tasks.md. */
export function taskBlocks(scan: MarkdownScan, document: OpenspecDocument): SpecDraft[] {
  let heading = 0;
  let section = "";
  return taskItemsIn(scan, scan.bodyLine, scan.lineCount).map((item) => {
    while ((scan.headings[heading]?.line ?? item.line) < item.line) {
      section = scan.headings[heading]?.title || section;
      heading += 1;
    }
    const number = taskNumber.exec(item.text)?.[1];
    const details = detailText(scan, item);
    const content = details === "" ? item.text : `${item.text}\n${details}`.trim();
    const title = blockTitle(item.text) || "Task";
    return toDraft(scan, document, {
      id: `${document.idStem}-tasks-${number ?? (slugOf(item.text) || "task")}`,
      spec_type: "task",
      title,
      content: content === "" ? title : content,
      metadata: {
        status: taskStatusOf(item.state),
        ...(number !== undefined && { task: number }),
        ...(section !== "" && { section }),
      },
      from: item.line,
      to: item.details.at(-1)?.to ?? item.line,
    });
  });
}
