import { toTitle } from "../../markdown/heading-title.ts";
import type { LineRange, TaskItem } from "../../model/task-list.ts";
import { toDottedNumber } from "./dotted-number.ts";

/** A task of the document: its checkbox, and what the text behind the box says. */
export interface TaskEntry {
  readonly item: TaskItem;
  readonly number: string | undefined;
  readonly title: string;
  /** The title before it is cut to the length of titles. */
  readonly fullTitle: string;
  /** cc-sdd's `(P)`: the task can be worked on beside its neighbours. */
  readonly isParallel: boolean;
  /** Detail lines further down, below a heading that repeats the task. */
  readonly elsewhere: readonly LineRange[];
}

/**
 * The tasks of a document in order. Some list all tasks first and go into details further down, below
 * headings such as `#### - [ ] 1.1 Title`; such a heading is the listed task again, not another one.
 */
export function taskEntries(items: readonly TaskItem[]): TaskEntry[] {
  const entries: (TaskEntry & { elsewhere: LineRange[] })[] = [];
  const byNumber = new Map<string, TaskEntry & { elsewhere: LineRange[] }>();
  for (const item of items) {
    const entry = { item, ...readTitle(item.text), elsewhere: [] };
    const listed = entry.number === undefined ? undefined : byNumber.get(entry.number);
    if (listed !== undefined && item.indent < 0 && listed.title === entry.title) {
      listed.elsewhere.push(...item.details);
      continue;
    }
    entries.push(entry);
    if (entry.number !== undefined && listed === undefined) byNumber.set(entry.number, entry);
  }
  return entries;
}

const numbered = /^(?:\*\*)?(?:Task\s+)?(\d+(?:\.\d+)+|\d{1,3})(?:[.):：]|(?=\s|$))(?:\*\*)?[.:：]?\s*(.*)$/s;
const parallelMark = /^\(P\)\s+/;

/** "1.2 Title", "1. Title", "**3. Title**" and "Task 4: Title" carry a number, "Title" none. */
function readTitle(text: string): Omit<TaskEntry, "item" | "elsewhere"> {
  const bold = /^\*\*(.+)\*\*$/s.exec(text)?.[1];
  const plain = bold !== undefined && !bold.includes("**") ? bold : text;
  const match = numbered.exec(plain);
  const title = match === null ? plain : (match[2] ?? "");
  const fullTitle = title.replace(parallelMark, "").trim();
  return {
    number: match?.[1] === undefined ? undefined : toDottedNumber(match[1]),
    title: toTitle(fullTitle),
    fullTitle,
    isParallel: parallelMark.test(title),
  };
}
