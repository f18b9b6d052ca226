import { matchesOf } from "../../../base/matches.ts";
import type { SpecMetadata } from "../../../protocol/spec-block.ts";
import type { DraftLink, DraftMention, SpecDraft } from "../../adapter.ts";
import { criteriaInTask } from "../../coverage/task-criteria.ts";
import { columnsBefore, isBlankLine, withoutColumns } from "../../markdown/characters.ts";
import { lineText, type MarkdownScan } from "../../markdown/scan-markdown.ts";
import { blockTitle } from "../../model/block-title.ts";
import { mentionsIn, toMentionPath } from "../../model/mentions.ts";
import { type LineRange, type TaskItem, taskItemsIn, taskStatusOf } from "../../model/task-list.ts";
import { statementId, storyId } from "./spec-blocks.ts";

const taskNumber = /^(?:\*\*)?(T\d{3,}[A-Za-z]?)\b(?:\*\*)?[:.]?[ \t]*/;
const flag = /^(?:\*\*)?\[([A-Za-z][A-Za-z0-9 -]{0,30})\](?:\*\*)?[ \t]*/;
/** The numbered tasks of a tasks.md; other boxes are checklists. */
export function taskBlocks(scan: MarkdownScan, document: { feature: string; folder: string }): SpecDraft[] {
  const items = taskItemsIn(scan, scan.bodyLine, scan.lineCount);
  const tasks = items.filter((item) => taskNumber.test(item.text));
  const lines = linesOfTasks(items, new Set(tasks));
  const positions = placesOf(scan);
  return tasks.map((item) =>
    toDraft(scan, { item, lines: lines.get(item) ?? [] }, { document, ...positions(item.line) }),
  );
}

/** The lines of each task, including those of nested boxes without a number. */
function linesOfTasks(items: readonly TaskItem[], tasks: ReadonlySet<TaskItem>): Map<TaskItem, LineRange[]> {
  const owners: (TaskItem | undefined)[] = [];
  const lines = new Map<TaskItem, LineRange[]>();
  for (const item of items) {
    const owner = tasks.has(item) ? item : item.parent === undefined ? undefined : owners[item.parent];
    owners.push(owner);
    if (owner === undefined) continue;
    const ranges = lines.get(owner) ?? [];
    if (item !== owner) ranges.push({ from: item.line, to: item.line });
    for (const range of item.details) ranges.push(range);
    lines.set(owner, ranges);
  }
  for (const ranges of lines.values()) ranges.sort((one, other) => one.from - other.from);
  return lines;
}

interface TaskPlace {
  readonly phase?: string;
  readonly section?: string;
}

/** Returns the second-level heading (a phase) and the third-level heading above a line. */
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
  const all = [{ from: item.line, to: item.line }, ...lines];
  const metadata: SpecMetadata = {
    status: taskStatusOf(item.state),
    task: number,
    ...(parallel && { parallel }),
    ...(story !== undefined && { story }),
    ...criteriaInTask(
      folder,
      content,
      [...statementsIn(scan, all)].map(([code]) => code),
    ),
    ...where,
  };
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

/** The marks in brackets after the number, and the words after the marks. */
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
    // Keeps blank lines between paragraphs, but leaves no gap for a nested task.
    if (from > previous + 1) content.push("");
    for (let line = from; line <= to; line += 1) {
      const text = lineText(scan, line);
      content.push(isBlankLine(text) ? "" : withoutColumns(text, width));
    }
    previous = to;
  }
  return content.join("\n").trimEnd();
}

const statements = /\b((?:N?FR|SC)-)(\d+)([A-Za-z]?)\b(?:[ \t]*(?:\.\.\.?|…|–|-|to)[ \t]*\1(\d+)\b)?/g;
const wordBoundary = /[\s`()[\]<>"',;]/;
/** A range of numbers longer than this is not what anybody means. */
const maxRange = 100;

/** The user story that a task belongs to, and the statements it names. */
function taskLinks(
  scan: MarkdownScan,
  lines: readonly LineRange[],
  place: { feature: string; story: string | undefined },
): DraftLink[] {
  const links = new Map<string, DraftLink>();
  const add = (target: string, line: number): void => {
    if (!links.has(target)) links.set(target, { kind: "implements", target, line });
  };
  if (place.story !== undefined) add(storyId(place.feature, place.story.slice(2)), lines[0]?.from ?? 1);
  for (const [code, line] of statementsIn(scan, lines)) add(statementId(place.feature, code), line);
  return [...links.values()];
}

/** The codes of the statements that lines name, with those inside of ranges. */
function* statementsIn(
  scan: MarkdownScan,
  lines: readonly LineRange[],
): Generator<readonly [code: string, line: number]> {
  for (const line of linesIn(lines)) {
    for (const [, prefix = "", first = "", letter = "", last] of matchesOf(
      statements,
      lineText(scan, line),
    )) {
      const from = Number(first);
      const to = last === undefined ? from : Math.min(Number(last), from + maxRange);
      yield [`${prefix}${first}${letter}`, line];
      for (let number = from + 1; number <= to; number += 1)
        yield [`${prefix}${String(number).padStart(first.length, "0")}`, line];
    }
  }
}

/** The template asks for exact file paths in the words of a task, so plain words are searched, too. */
function taskMentions(scan: MarkdownScan, lines: readonly LineRange[]): DraftMention[] {
  const mentions = new Map<string, DraftMention>();
  for (const { from, to } of lines)
    for (const mention of mentionsIn(scan, from, to)) mentions.set(mention.path, mention);
  for (const line of linesIn(lines)) {
    for (const word of wordsWithSlash(lineText(scan, line))) {
      const path = /\/.*\.[A-Za-z0-9]/.test(word) ? toMentionPath(word.replace(/[.:]+$/, "")) : undefined;
      if (path !== undefined && !mentions.has(path)) mentions.set(path, { path, line });
    }
  }
  return [...mentions.values()];
}

/** The words of a line that hold a slash; quotes, brackets and commas are no part of a word. */
function wordsWithSlash(text: string): string[] {
  const words: string[] = [];
  let end = 0;
  for (let slash = text.indexOf("/"); slash !== -1; slash = text.indexOf("/", end)) {
    let start = slash;
    while (start > end && !wordBoundary.test(text[start - 1] ?? "")) start -= 1;
    end = slash + 1;
    while (end < text.length && !wordBoundary.test(text[end] ?? "")) end += 1;
    if (end - start <= 512) words.push(text.slice(start, end));
  }
  return words;
}

/** Every line of some ranges, in order. */
function* linesIn(ranges: readonly LineRange[]): Generator<number> {
  for (const { from, to } of ranges) for (let line = from; line <= to; line += 1) yield line;
}
