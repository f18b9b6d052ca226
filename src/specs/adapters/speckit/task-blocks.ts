import type { SpecMetadata } from "../../../protocol/spec-block.ts";
import type { SpecDraft } from "../../adapter.ts";
import { columnsBefore, isBlankLine, withoutColumns } from "../../markdown/indent.ts";
import { lineText, type MarkdownScan } from "../../markdown/scan-markdown.ts";
import { blockTitle } from "../../model/block-title.ts";
import { type LineRange, type TaskItem, taskItemsIn } from "../../model/task-list.ts";
import { taskStatusOf } from "../../model/task-status.ts";
import { statementId } from "./speckit-path.ts";
import { linesIn, taskLinks, taskMentions } from "./task-references.ts";

const taskNumber = /^(?:\*\*)?(T\d{3,}[A-Za-z]?)\b(?:\*\*)?[:.]?[ \t]*/;
const flag = /^(?:\*\*)?\[([A-Za-z][A-Za-z0-9 -]{0,30})\](?:\*\*)?[ \t]*/;
/** The numbered tasks of a tasks.md; other boxes are checklists. */
export function taskBlocks(scan: MarkdownScan, document: { feature: string; folder: string }): SpecDraft[] {
  const items = taskItemsIn(scan, scan.bodyLine, scan.lineCount);
  const tasks = items.filter((item) => taskNumber.test(item.text));
  const lines = linesOfTasks(items, new Set(tasks));
  const places = placesOf(scan);
  return tasks.map((item) =>
    toDraft(scan, { item, lines: lines.get(item) ?? [] }, { document, ...places(item.line) }),
  );
}

/** The lines of each task: its own, and those of boxes without a number that are nested in it. */
function linesOfTasks(items: readonly TaskItem[], tasks: ReadonlySet<TaskItem>): Map<TaskItem, LineRange[]> {
  const owners: (TaskItem | undefined)[] = [];
  const lines = new Map<TaskItem, LineRange[]>();
  for (const item of items) {
    const owner = tasks.has(item) ? item : item.parent === undefined ? undefined : owners[item.parent];
    owners.push(owner);
    if (owner === undefined) continue;
    const own = lines.get(owner) ?? [];
    if (item !== owner) own.push({ from: item.line, to: item.line });
    for (const range of item.details) own.push(range);
    lines.set(owner, own);
  }
  for (const own of lines.values()) own.sort((one, other) => one.from - other.from);
  return lines;
}

interface TaskPlace {
  readonly phase?: string;
  readonly section?: string;
}

/** The second-level heading (a phase) and the third-level one that a line stands under. */
function placesOf(scan: MarkdownScan): (line: number) => TaskPlace {
  let next = 0;
  let phase: string | undefined;
  let section: string | undefined;
  return (line) => {
    for (
      let heading = scan.headings[next];
      heading !== undefined && heading.line < line;
      heading = scan.headings[next]
    ) {
      next += 1;
      if (heading.level <= 2) {
        phase = heading.level === 2 ? heading.title : undefined;
        section = undefined;
      } else if (heading.level === 3) section = heading.title;
    }
    return { ...(phase !== undefined && { phase }), ...(section !== undefined && { section }) };
  };
}

function toDraft(
  scan: MarkdownScan,
  task: { item: TaskItem; lines: readonly LineRange[] },
  place: { document: { feature: string; folder: string } } & TaskPlace,
): SpecDraft {
  const { item, lines } = task;
  const { document, ...where } = place;
  const { feature, folder } = document;
  const number = taskNumber.exec(item.text)?.[1] ?? "";
  const { parallel, story, words } = flagsOf(item.text);
  const content = contentOf(scan, task);
  const metadata: SpecMetadata = {
    status: taskStatusOf(item.state),
    task: number,
    ...(parallel && { parallel }),
    ...(story !== undefined && { story }),
    ...where,
  };
  const all = [{ from: item.line, to: item.line }, ...lines];
  const rest = content.slice(item.text.length);
  return {
    id: { kind: "base", value: statementId(feature, number) },
    framework: "fw_d",
    spec_type: "task",
    title: blockTitle(`${number} ${words}${rest}`) || number,
    content,
    tags: ["fw_d", feature, "task"],
    lifecycle: "active",
    priority: "medium",
    metadata,
    span: { start_line: item.line, end_line: all.at(-1)?.to ?? item.line },
    feature: folder,
    links: taskLinks(scan, all, { feature, story }),
    mentions: taskMentions(scan, all),
  };
}

/** What the brackets behind the number say, and the words behind them. */
function flagsOf(text: string): { parallel: boolean; story: string | undefined; words: string } {
  let words = text.replace(taskNumber, "");
  let parallel = false;
  let story: string | undefined;
  for (let match = flag.exec(words); match !== null; match = flag.exec(words)) {
    const name = match[1] ?? "";
    if (name === "P") parallel = true;
    else if (/^US\d+$/i.test(name)) story ??= name.toUpperCase();
    else break;
    words = words.slice(match[0].length);
  }
  return { parallel, story, words };
}

function contentOf(scan: MarkdownScan, task: { item: TaskItem; lines: readonly LineRange[] }): string {
  const { item, lines } = task;
  const content = [item.text];
  let width = Number.POSITIVE_INFINITY;
  for (const line of linesIn(lines)) {
    const text = lineText(scan, line);
    if (!isBlankLine(text)) width = Math.min(width, columnsBefore(text));
  }
  let previous = item.line;
  for (const { from, to } of lines) {
    // Blank lines between two parts keep paragraphs apart; a nested task in between leaves no trace.
    if (from > previous + 1) content.push("");
    for (let line = from; line <= to; line += 1) {
      const text = lineText(scan, line);
      content.push(isBlankLine(text) ? "" : withoutColumns(text, width));
    }
    previous = to;
  }
  return content.join("\n").trimEnd();
}
