import { columnsBefore, isBlankLine, withoutColumns } from "../../markdown/characters.ts";
import { type LineKind, lineKinds, lineText, type MarkdownScan } from "../../markdown/scan-markdown.ts";
import { markerWidth } from "../../markdown/segments.ts";

/** A rule of a `.cursorrules` file: its lines, its text and its topic. */
export interface ListedRule {
  readonly startLine: number;
  readonly endLine: number;
  /** Without the list marker and its indent; line ends are LF. */
  readonly text: string;
  /** The heading or label above the rule. */
  readonly topic?: string;
}

/** A list marker, with the white space before and after it; users paste the bullet `•`. */
const listMarker = /^[ \t]*(?:[-*+•]|\d{1,9}[.)])(?:[ \t]+|$)/;

/** A rule that is being read. `indent` is the column of a list item's text. */
interface OpenRule {
  readonly kind: "item" | "paragraph" | "other";
  readonly from: number;
  to: number;
  readonly markerLength: number;
  readonly indent: number;
  /** A paragraph that introduces the list below it, which belongs to it. */
  introduces: boolean;
}

/**
 * The rules of a `.cursorrules` text. The format is free, so common usage decides: each
 * list item of the outer list with all that is nested in it, and each paragraph outside of lists.
 *
 * - Code and HTML belong to the rule before them, and so does a table that is indented below a list item.
 * - Each row of any other table is a rule, in words that need no columns above them.
 * - Headings are topics, and so are labels: a short line in bold or with a colon at its end, or any
 *   short line without a full stop before a list.
 * - A longer line that ends with a colon introduces the list below it, and both are one rule.
 * - A heading or label with nothing below it is a rule itself.
 */
export function rulesOf(scan: MarkdownScan): ListedRule[] {
  const reader = new RuleReader(scan);
  const headings = new Map(scan.headings.map((heading) => [heading.line, heading]));
  for (let line = scan.bodyLine; line <= scan.lineCount; line += 1) {
    const heading = headings.get(line);
    if (heading !== undefined) {
      reader.heading(heading.title, { from: line, to: heading.end_line, level: heading.level });
      line = heading.end_line;
      continue;
    }
    const kind = scan.kinds[line - 1] ?? lineKinds.prose;
    const table = kind === lineKinds.prose ? tableAt(scan, line) : undefined;
    if (table !== undefined && reader.table(table, line)) line = table.endLine;
    else reader.line(line, kind);
  }
  return reader.finish();
}

/** Reads line by line; private state that changes with every line is what makes it a class. */
class RuleReader {
  private readonly scan: MarkdownScan;
  private readonly rules: ListedRule[] = [];
  private open: OpenRule | undefined;
  private gap = false;
  private topic: string | undefined;
  /** A topic without a rule so far. */
  private bareTopic: { from: number; to: number; level: number } | undefined;

  constructor(scan: MarkdownScan) {
    this.scan = scan;
  }

  heading(title: string, place: { from: number; to: number; level: number }): void {
    this.close();
    // A heading without words ends a rule, and is about nothing.
    if (title !== "") this.startTopic(title, place);
  }

  line(line: number, kind: LineKind): void {
    const text = lineText(this.scan, line);
    if (isBlankLine(text)) {
      this.gap = true;
      return;
    }
    if (kind !== lineKinds.prose) this.attach(line, kind);
    else if (isThematicBreak(text) && !(this.open?.kind === "item" && columnsBefore(text) >= 2)) this.close();
    else this.proseLine(line, text);
    this.gap = false;
  }

  /** Takes the rows as rules; false for a table that belongs to the list item above it. */
  table({ rows, endLine }: Table, from: number): boolean {
    const indent = columnsBefore(lineText(this.scan, from));
    if (this.open?.kind === "item" && indent >= this.open.indent + 2) return false;
    this.close();
    this.bareTopic = undefined;
    // The column names belong to the first row and trailing blank rows to the last one, so that every line has a row.
    for (const [index, { line, text }] of rows.entries())
      this.add(index === 0 ? from : line, index === rows.length - 1 ? endLine : line, text);
    this.gap = false;
    return true;
  }

  finish(): ListedRule[] {
    this.close();
    this.closeTopic(0);
    return this.rules;
  }

  private proseLine(line: number, text: string): void {
    const marker = listMarker.exec(text)?.[0];
    const indent = columnsBefore(text);
    if (marker !== undefined) {
      if (this.open?.introduces || (this.open?.kind === "item" && indent >= this.open.indent + 2)) {
        this.open.to = line;
        return;
      }
      if (this.open?.kind === "paragraph" && this.introduceList(this.open)) {
        this.open.introduces = true;
        this.open.to = line;
        return;
      }
      this.close();
      this.start("item", line, { markerLength: marker.length, indent });
    } else if (this.open !== undefined && this.continues(this.open, indent)) {
      this.open.to = line;
    } else {
      this.close();
      this.start("paragraph", line, { markerLength: 0, indent: 0 });
    }
  }

  /** Whether a line of text belongs to the open rule. Text after separate code is another rule. */
  private continues(rule: OpenRule, indent: number): boolean {
    if (!this.gap) return rule.kind !== "other";
    return indent >= 2 && (rule.kind === "item" || rule.introduces);
  }

  /** Code and HTML continue a rule. A comment on its own says nothing to Cursor's reader. */
  private attach(line: number, kind: LineKind): void {
    if (this.open !== undefined) {
      if (kind !== lineKinds.comment || this.hasText(this.open)) this.open.to = line;
    } else if (kind !== lineKinds.comment) this.start("other", line, { markerLength: 0, indent: 0 });
  }

  private start(
    kind: OpenRule["kind"],
    line: number,
    marker: { markerLength: number; indent: number },
  ): void {
    this.open = { kind, from: line, to: line, ...marker, introduces: false };
  }

  /** Whether the paragraph before a list is its introduction; a label becomes the topic instead. */
  private introduceList(paragraph: OpenRule): boolean {
    const text = this.textOf(paragraph);
    if (paragraph.from === paragraph.to && isLabel(text, "before-list")) {
      this.open = undefined;
      this.startTopic(labelText(text), { from: paragraph.from, to: paragraph.to, level: 7 });
      return false;
    }
    return endsWithColon(text);
  }

  private close(): void {
    const rule = this.open;
    this.open = undefined;
    if (rule === undefined) return;
    const text = this.textOf(rule);
    if (text === "" || !this.hasText(rule)) return;
    if (rule.kind === "paragraph" && rule.from === rule.to && isLabel(text, "alone")) {
      this.startTopic(labelText(text), { from: rule.from, to: rule.to, level: 7 });
      return;
    }
    this.bareTopic = undefined;
    this.add(rule.from, rule.to, text);
  }

  private startTopic(title: string, place: { from: number; to: number; level: number }): void {
    this.closeTopic(place.level);
    this.topic = title;
    this.bareTopic = place;
  }

  /** A topic with no rule below it is a rule, unless the next heading is nested in it. */
  private closeTopic(nextLevel: number): void {
    const bare = this.bareTopic;
    this.bareTopic = undefined;
    if (bare !== undefined && nextLevel <= bare.level && this.topic !== undefined)
      this.add(bare.from, bare.to, this.topic);
  }

  private add(startLine: number, endLine: number, text: string): void {
    this.rules.push({ startLine, endLine, text, ...(this.topic !== undefined && { topic: this.topic }) });
  }

  /** Whether a rule contains more than a marker and comments. */
  private hasText(rule: OpenRule): boolean {
    if (lineText(this.scan, rule.from).slice(rule.markerLength).trim() !== "") return true;
    for (let line = rule.from + 1; line <= rule.to; line += 1) {
      if (this.scan.kinds[line - 1] !== lineKinds.comment && lineText(this.scan, line).trim() !== "")
        return true;
    }
    return false;
  }

  private textOf(rule: OpenRule): string {
    const first = lineText(this.scan, rule.from);
    const marker = first.slice(0, rule.markerLength);
    const lines = [first.slice(marker.length)];
    const width = columnsBefore(first) + (rule.kind === "item" ? markerWidth(marker) : 0);
    for (let line = rule.from + 1; line <= rule.to; line += 1) {
      const text = lineText(this.scan, line);
      lines.push(isBlankLine(text) ? "" : withoutColumns(text, width));
    }
    return lines.join("\n").trim();
  }
}

function isThematicBreak(text: string): boolean {
  const mark = text.trimStart()[0] ?? "";
  if (mark === "" || !"-*_".includes(mark)) return false;
  const marks = text.replace(/[ \t]/g, "");
  return marks.length >= 3 && marks === mark.repeat(marks.length);
}

const maxLength = 60;
const maxWords = 8;

/**
 * Whether a separate line is a label for the text below it: it is short, and in bold or with a colon at
 * its end. Before a list, a short line without a full stop is enough.
 */
function isLabel(text: string, place: "alone" | "before-list"): boolean {
  if (text.length > maxLength || text.split(/\s+/, maxWords + 1).length > maxWords) return false;
  if (labelText(text) === "") return false;
  if (endsWithColon(text) || /^(\*\*|__)[^*_]+\1$/.test(text)) return true;
  return place === "before-list" && !/[.!?;。！？…`>|]$/.test(text);
}

/** A label without emphasis and without its colon. */
function labelText(text: string): string {
  return text
    .replace(/\*\*|__/g, "")
    .trim()
    .replace(/[:：]$/, "")
    .trim();
}

/** Whether a text ends with a colon, in or out of emphasis. */
function endsWithColon(text: string): boolean {
  return /[:：][*_]*$/.test(text);
}

/** A row of a table, as one sentence that needs no columns above it. */
interface TableRow {
  readonly line: number;
  readonly text: string;
}

interface Table {
  readonly rows: readonly TableRow[];
  readonly endLine: number;
}

/** Expects a line without blanks at its ends. */
const delimiterRow = /^\|?(?:[ \t]*:?-+:?[ \t]*\|)*(?:[ \t]*:?-+:?)?$/;

/** A table that says nothing in so many rows says nothing at all: looking on from each of its lines would take long. */
const maxSilentRows = 20;

/**
 * The table whose head is at a line: rows in pipes below a row of columns and a row of dashes, to the first line
 * without a pipe. `undefined` if there is no table, or all of its rows are empty.
 */
function tableAt(scan: MarkdownScan, line: number): Table | undefined {
  const head = lineText(scan, line);
  const below = line < scan.lineCount ? lineText(scan, line + 1) : "";
  if (!head.includes("|") || !below.includes("|") || !delimiterRow.test(below.trim())) return undefined;
  const columns = cellsOf(head);
  if (columns.length !== cellsOf(below).length) return undefined;
  const rows: TableRow[] = [];
  let end = line + 1;
  for (let at = line + 2; at <= scan.lineCount; at += 1) {
    const row = lineText(scan, at);
    if (!row.includes("|") || scan.kinds[at - 1] !== lineKinds.prose) break;
    if (rows.length === 0 && at > line + maxSilentRows) return undefined;
    end = at;
    const text = sentenceOf(columns, cellsOf(row));
    if (text !== "") rows.push({ line: at, text });
  }
  return rows.length === 0 ? undefined : { rows, endLine: end };
}

/** The cells between the pipes of a line; a pipe after a backslash is text. */
function cellsOf(line: string): string[] {
  const cells = line
    .trim()
    .replace(/^\|/, "")
    .split(/(?<!\\)\|/);
  if (cells.at(-1)?.trim() === "" && cells.length > 1) cells.pop();
  return cells.map((cell) => cell.trim().replaceAll("\\|", "|"));
}

/** "`npm test`: runs the tests", and with more columns "Rethrow — Instead: let it pass; Why: CWE-755". */
function sentenceOf(columns: readonly string[], cells: readonly string[]): string {
  const texts = cells
    .map((cell, index) => ({ cell, column: columns[index] ?? "" }))
    .filter(({ cell }) => /[\p{L}\p{N}]/u.test(cell));
  const [first, ...others] = texts;
  const [second, ...more] = others;
  if (first === undefined || second === undefined) return first?.cell ?? "";
  if (more.length === 0) return `${first.cell}: ${second.cell}`;
  const rest = others.map(({ column, cell }) => (column === "" ? cell : `${column}: ${cell}`));
  return `${first.cell} — ${rest.join("; ")}`;
}
