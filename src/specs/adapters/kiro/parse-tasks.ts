import type { Diagnostic } from "../../../protocol/diagnostic.ts";
import type { TaskStatus } from "../../../protocol/spec-block.ts";
import type { ParsedSpecs, SpecDraft, SpecSource } from "../../adapter.ts";
import { criteriaInTask } from "../../coverage/task-criteria.ts";
import {
  type MarkdownScan,
  scanMarkdown,
  structureWarning,
  toTitle,
  unclosedDiagnostics,
} from "../../markdown/scan-markdown.ts";
import { slugOf } from "../../model/block-title.ts";
import { mentionsIn } from "../../model/mentions.ts";
import { detailText, type LineRange, type TaskItem, taskItemsIn } from "../../model/task-list.ts";
import {
  duplicateNumber,
  type KiroDocument,
  nothingFound,
  type RequirementLabel,
  requirementLabels,
  requirementLinks,
  toDottedNumber,
} from "./kiro-document.ts";

/**
 * The meaning of the character in a box. A queued task (`[~]`) waits to be run and is `open`; the
 * character itself is kept as `metadata.state`.
 */
const statuses: Readonly<Record<string, TaskStatus>> = {
  " ": "open",
  "~": "open",
  "-": "in_progress",
  "/": "in_progress",
  x: "done",
  X: "done",
  "✓": "done",
  "✔": "done",
  "√": "done",
  "☑": "done",
};

/** A label with words that mean that the task has no requirement. */
const nonePattern = /^\W*(?:none|n\/a|tbd|无|無|なし|없음|nenhum[ao]?|ningun[ao]|aucune?|keine?|нет)?\W*$/iu;

/** Reads a tasks.md: a block per checkbox, with its detail lines but without those of its subtasks. */
export function parseTasks(source: SpecSource, document: KiroDocument): ParsedSpecs {
  const scan = scanMarkdown(source.text);
  const diagnostics = unclosedDiagnostics(scan, source.path);
  const entries = taskEntries(taskItemsIn(scan, scan.bodyLine, scan.lineCount));
  const seen = new Map<string, number>();
  const labels = new Map(entries.map((entry) => [entry, requirementLabels(scan, linesOf(entry))]));
  for (const label of [...labels.values()].flat()) {
    const { kind, isOwnLine, names, rest } = label;
    if (kind === "implements" && isOwnLine && names.length === 0 && !nonePattern.test(rest))
      diagnostics.push(nothingNamed(source.path, label));
  }
  for (const { item, number } of entries) {
    if (statuses[item.state] === undefined) diagnostics.push(oddState(source.path, item));
    if (number === undefined) continue;
    const first = seen.get(number);
    if (first === undefined) seen.set(number, item.line);
    else {
      const message = `Task ${number} is already in line ${first}.`;
      diagnostics.push(duplicateNumber(source.path, item.line, message));
    }
  }
  if (entries.length === 0) diagnostics.push(...nothingFound(scan, source.path, "task"));
  const drafts = entries.map(
    (entry): SpecDraft => ({
      ...toDraft(scan, entry, document),
      links: requirementLinks(labels.get(entry) ?? [], document.feature),
    }),
  );
  return { drafts, diagnostics };
}

function toDraft(scan: MarkdownScan, entry: TaskEntry, document: KiroDocument): Omit<SpecDraft, "links"> {
  const { item, number, title } = entry;
  const details = detailText(scan, { details: [...item.details, ...entry.elsewhere] });
  return {
    id: { kind: "base", value: `fw_a-${document.feature}-tasks-${number ?? (slugOf(title) || "task")}` },
    framework: "fw_a",
    spec_type: "task",
    title: title || `Task ${number ?? ""}`.trim(),
    content: contentOf(entry, details),
    tags: ["fw_a", document.feature],
    lifecycle: "active",
    priority: "medium",
    metadata: {
      ...(number === undefined ? {} : { number }),
      status: statuses[item.state] ?? "open",
      ...(item.state === "~" || statuses[item.state] === undefined ? { state: item.state } : {}),
      ...(item.optional ? { optional: true } : {}),
      ...(entry.isParallel ? { parallel: true } : {}),
      ...criteriaInTask(document.folder, `${item.text}\n${details}`),
    },
    span: { start_line: item.line, end_line: item.details.at(-1)?.to ?? item.line },
    feature: document.folder,
    mentions: linesOf(entry).flatMap(({ from, to }) => mentionsIn(scan, from, to)),
  };
}

/** The details, after the whole text of the first line if the title had to be shortened. */
function contentOf(entry: TaskEntry, details: string): string {
  const { title, fullTitle } = entry;
  if (fullTitle.length > title.length) return details === "" ? fullTitle : `${fullTitle}\n${details}`;
  return details || title || "Task";
}

/** The lines of a task without those of its subtasks, in as few ranges as possible. */
function linesOf({ item, elsewhere }: TaskEntry): LineRange[] {
  const [first, ...others] = item.details;
  if (first?.from !== item.line + 1)
    return [{ from: item.line, to: item.line }, ...item.details, ...elsewhere];
  return [{ from: item.line, to: first.to }, ...others, ...elsewhere];
}

/** A warning for a label of requirements that names neither a number nor a code. */
function nothingNamed(path: string, { line, rest }: RequirementLabel): Diagnostic {
  const message = `"${rest.slice(0, 80)}" names no requirement by its number (1.2), its code (NFR-1) or "All".`;
  return {
    severity: "warning",
    rule: "dangling-reference",
    code: "no_requirement_named",
    message,
    path,
    line,
  };
}

function oddState(path: string, item: TaskItem): Diagnostic {
  const message = `"[${item.state}]" is not a task state (blank, x, ✓, -, / or ~); the task counts as open.`;
  return structureWarning({ path, line: item.line }, "task_state_unknown", message);
}

/** A task of the document: its checkbox, and the parts of the text after the box. */
interface TaskEntry {
  readonly item: TaskItem;
  readonly number: string | undefined;
  readonly title: string;
  /** The title before it is cut to the length of titles. */
  readonly fullTitle: string;
  /** cc-sdd's `(P)`: the task can be done in parallel with its neighbours. */
  readonly isParallel: boolean;
  /** Detail lines further down, below a heading that repeats the task. */
  readonly elsewhere: readonly LineRange[];
}

/**
 * The tasks of a document in order. Some list all tasks first and go into details further down, below
 * headings such as `#### - [ ] 1.1 Title`; such a heading is the listed task again, not another one.
 */
function taskEntries(items: readonly TaskItem[]): TaskEntry[] {
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

/** "1.2 Title", "1. Title", "**3. Title**" and "Task 4: Title" have a number; "Title" has none. */
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
