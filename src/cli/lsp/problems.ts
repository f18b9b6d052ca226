import type {
  CodeAction,
  Diagnostic as EditorDiagnostic,
  Location,
  OptionalVersionedTextDocumentIdentifier,
  Range,
} from "vscode-languageserver";
import type { Diagnostic } from "../../protocol/diagnostic.ts";

/** A whole line of a file, from 1, for a list of places. */
export function toLocation(uri: string, line = 1): Location {
  const start = { line: line - 1, character: 0 };
  return { uri, range: { start, end: start } };
}

/** Where an editor underlines a problem: its columns, or the text of its line without the indent. */
export function rangeOf({ line = 1, column, end_column }: Diagnostic, lines: readonly string[]): Range {
  const row = Math.min(line, Math.max(1, lines.length)) - 1;
  const text = lines[row] ?? "";
  const from = column === undefined ? text.length - text.trimStart().length : column - 1;
  const to = column === undefined ? text.trimEnd().length : (end_column ?? column + 1) - 1;
  const character = Math.min(from, text.length);
  return {
    start: { line: row, character },
    end: { line: row, character: Math.min(Math.max(from, to), text.length) },
  };
}

/** Copies are often on purpose, so an editor shows them as information. */
const isInformation = ({ code, other }: Diagnostic): boolean => other !== undefined && code === "same_text";

/** A problem as editors show it. `uriOf` gives the address of the other place of a finding about two. */
export function toEditorDiagnostic(
  problem: Diagnostic,
  lines: readonly string[],
  uriOf: (path: string) => string,
): EditorDiagnostic {
  const { severity, message, code, rule, other } = problem;
  return {
    range: rangeOf(problem, lines),
    message,
    source: "kit",
    code: code ?? rule,
    severity: severity === "error" ? 1 : isInformation(problem) ? 3 : 2,
    ...(other && {
      relatedInformation: [
        { message: "The other place", location: toLocation(uriOf(other.path), other.line) },
      ],
    }),
  };
}

/** The edits of the problems in a range that have a fix; each replaces what the problem underlines. */
export function toCodeActions(
  problems: readonly Diagnostic[],
  range: Range,
  document: {
    readonly id: OptionalVersionedTextDocumentIdentifier;
    readonly lines: readonly string[];
    readonly uriOf: (path: string) => string;
  },
): CodeAction[] {
  const { id, lines, uriOf } = document;
  return problems.flatMap((problem): CodeAction[] => {
    const at = rangeOf(problem, lines);
    if (problem.fix === undefined || at.end.line < range.start.line || at.start.line > range.end.line)
      return [];
    const newText = problem.fix.text;
    return [
      {
        title: newText === "" ? "Remove this" : `Use ${newText.replace(/\s+/g, " ").trim().slice(0, 80)}`,
        kind: "quickfix",
        isPreferred: true,
        diagnostics: [toEditorDiagnostic(problem, lines, uriOf)],
        edit: { documentChanges: [{ textDocument: id, edits: [{ range: at, newText }] }] },
      },
    ];
  });
}
