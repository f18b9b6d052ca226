import type { Diagnostic } from "../../../protocol/diagnostic.ts";
import type { TaskStatus } from "../../../protocol/spec-block.ts";
import type { ParsedSpecs, SpecDraft, SpecSource } from "../../adapter.ts";
import { toTitle } from "../../markdown/heading-title.ts";
import { type MarkdownScan, scanMarkdown } from "../../markdown/scan-markdown.ts";
import { unclosedDiagnostics } from "../../markdown/unclosed-diagnostics.ts";
import { mentionsIn } from "../../mentions.ts";
import { slugOf } from "../../slug.ts";
import { detailText, type TaskItem, taskItemsIn } from "../../task-list.ts";
import { duplicateNumber, nothingFound } from "./diagnostics.ts";
import type { KiroDocument } from "./kiro-path.ts";
import { requirementLinks } from "./requirement-references.ts";

/**
 * What the character in a box means. A queued task (`[~]`) waits to be run and is `open`; the
 * character itself is kept as `metadata.state`.
 */
const statuses: Readonly<Record<string, TaskStatus>> = {
  " ": "open",
  "~": "open",
  "-": "in_progress",
  x: "done",
  X: "done",
};

/** Reads a tasks.md: a block per checkbox, with the detail lines of its own. */
export function parseTasks(source: SpecSource, document: KiroDocument): ParsedSpecs {
  const scan = scanMarkdown(source.text);
  const diagnostics = unclosedDiagnostics(scan, source.path);
  const items = taskItemsIn(scan, scan.bodyLine, scan.lineCount);
  const seen = new Map<string, number>();
  const drafts = items.map((item): SpecDraft => {
    const { number, title } = readTitle(item.text);
    const first = number === undefined ? undefined : seen.get(number);
    if (first !== undefined) {
      diagnostics.push(
        duplicateNumber(source.path, item.line, `Task ${number} is already in line ${first}.`),
      );
    } else if (number !== undefined) seen.set(number, item.line);
    if (statuses[item.state] === undefined) diagnostics.push(oddState(source.path, item));
    return toDraft(scan, item, { document, number, title });
  });
  if (drafts.length === 0) diagnostics.push(...nothingFound(scan, source.path, "task"));
  return { drafts, diagnostics };
}

interface TaskNames {
  readonly document: KiroDocument;
  readonly number: string | undefined;
  readonly title: string;
}

function toDraft(scan: MarkdownScan, item: TaskItem, names: TaskNames): SpecDraft {
  const { document, number, title } = names;
  const own = [{ from: item.line, to: item.line }, ...item.details];
  const mentions = new Map(
    own.flatMap(({ from, to }) => mentionsIn(scan, from, to)).map((one) => [one.path, one]),
  );
  return {
    id: { kind: "base", value: `fw_a-${document.feature}-tasks-${number ?? (slugOf(title) || "task")}` },
    framework: "fw_a",
    spec_type: "task",
    title: title || `Task ${number ?? ""}`.trim(),
    content: detailText(scan, item) || title || "Task",
    tags: ["fw_a", document.feature],
    lifecycle: "active",
    priority: "medium",
    metadata: {
      ...(number === undefined ? {} : { number }),
      status: statuses[item.state] ?? "open",
      ...(item.state === "~" || statuses[item.state] === undefined ? { state: item.state } : {}),
      ...(item.optional ? { optional: true } : {}),
    },
    span: { start_line: item.line, end_line: item.details.at(-1)?.to ?? item.line },
    feature: document.folder,
    links: requirementLinks(scan, own, document.feature),
    mentions: [...mentions.values()],
  };
}

/** "1.2 Title", "1. Title", "**3. Title**" and "Task 4: Title" carry a number, "Title" none. */
function readTitle(text: string): { number: string | undefined; title: string } {
  const bold = /^\*\*(.+)\*\*$/s.exec(text)?.[1];
  const plain = bold !== undefined && !bold.includes("**") ? bold : text;
  const match =
    /^(?:\*\*)?(?:Task\s+)?(\d+(?:\.\d+)+|\d{1,3})(?:[.):：]|(?=\s|$))(?:\*\*)?[.:：]?\s*(.*)$/s.exec(plain);
  const title = toTitle(match === null ? plain : (match[2] ?? ""));
  return { number: match?.[1]?.replace(/(^|\.)0+(?=\d)/g, "$1"), title };
}

function oddState(path: string, item: TaskItem): Diagnostic {
  return {
    severity: "warning",
    rule: "structure",
    code: "task_state_unknown",
    message: `"[${item.state}]" is not a task state (blank, x, - or ~); the task counts as open.`,
    path,
    line: item.line,
  };
}
