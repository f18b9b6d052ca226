/** A line that a check complains about. */
export interface RuleFinding {
  /** Relative to the project root. */
  readonly path: string;
  readonly line: number;
  readonly column?: number;
  readonly message: string;
}

/** Findings of one check; more would tell nothing new. */
const mostFindings = 50;
/** Longer lines are no remarks of a tool. */
const longestLine = 2_000;
const longestMessage = 500;

/** The place in `path:line: message`, `path:line:column: message`, and TypeScript's `path(line,column): message`. */
const place = /(?::(\d{1,9})(?::(\d{1,9}))?|\((\d{1,9})(?:,(\d{1,9}))?\))(?::| -)/g;
/** Places in one line that are tried: the name of a file can contain some. */
const mostPlaces = 20;

/**
 * Finds the remarks in what a check printed. A line counts only if it names a file of the project, so that a stack trace is none.
 *
 * @param isFile Whether the project has a file, by its path relative to the root.
 */
export function parseFindings(output: string, isFile: (path: string) => boolean): readonly RuleFinding[] {
  const findings: RuleFinding[] = [];
  for (const line of output.split(/\r\n|\n|\r/)) {
    const finding = line.length > longestLine ? undefined : parseLine(line.trim(), isFile);
    if (finding !== undefined) findings.push(finding);
    if (findings.length === mostFindings) break;
  }
  return findings;
}

function parseLine(line: string, isFile: (path: string) => boolean): RuleFinding | undefined {
  let tried = 0;
  for (const match of line.matchAll(place)) {
    const [all, line1, column1, line2, column2] = match;
    const path = line.slice(0, match.index).replace(/^(?:\.\/)+/, "");
    const [number, column] = [Number(line1 ?? line2), Number(column1 ?? column2 ?? 0)];
    const message = line.slice(match.index + all.length).trim();
    if (number > 0 && message !== "" && isFile(path))
      return {
        path,
        line: number,
        ...(column > 0 && { column }),
        message: message.slice(0, longestMessage),
      };
    tried += 1;
    if (tried === mostPlaces) return undefined;
  }
  return undefined;
}
