import { lineKinds, lineText, type MarkdownScan } from "../../markdown/scan-markdown.ts";

/** A row of a table, as one sentence that needs no columns above it. */
export interface TableRow {
  readonly line: number;
  readonly text: string;
}

export interface Table {
  readonly rows: readonly TableRow[];
  readonly endLine: number;
}

/** Of a line without blanks at its ends. */
const delimiterRow = /^\|?(?:[ \t]*:?-+:?[ \t]*\|)*(?:[ \t]*:?-+:?)?$/;

/** A table that says nothing in so many rows says nothing at all: looking on from each of its lines would take long. */
const maxSilentRows = 20;

/**
 * The table whose head stands in a line: rows in pipes below a row of columns and one of dashes, to the first line
 * without a pipe. Undefined where there is none, or none of its rows says anything.
 */
export function tableAt(scan: MarkdownScan, line: number): Table | undefined {
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

/** The cells between the pipes of a line; a pipe behind a backslash is text. */
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
  const said = cells
    .map((cell, index) => ({ cell, column: columns[index] ?? "" }))
    .filter(({ cell }) => /[\p{L}\p{N}]/u.test(cell));
  const [first, ...others] = said;
  const [second, ...more] = others;
  if (first === undefined || second === undefined) return first?.cell ?? "";
  if (more.length === 0) return `${first.cell}: ${second.cell}`;
  const rest = others.map(({ column, cell }) => (column === "" ? cell : `${column}: ${cell}`));
  return `${first.cell} — ${rest.join("; ")}`;
}
