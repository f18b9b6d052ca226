/** A code span of a line: the offsets of its content, between the backtick runs. */
export interface CodeSpan {
  readonly from: number;
  readonly to: number;
}

/** Code spans after CommonMark 0.31.2, section 6.1: a run of backticks closes with an equal run. */
export function codeSpans(line: string): CodeSpan[] {
  const runs = backtickRuns(line);
  const first = runs[0]?.length;
  const isUniform = runs.every((run) => run.length === first);
  const spans: CodeSpan[] = [];
  // Where all runs are alike, as on most lines, each one closes with the next.
  const closers = isUniform ? undefined : closersOf(runs);
  for (let index = 0; index < runs.length; index += 1) {
    const close = closers === undefined ? index + 1 : (closers[index] ?? runs.length);
    const opener = runs[index];
    const closer = runs[close];
    if (opener === undefined || closer === undefined) continue;
    spans.push({ from: opener.at + opener.length, to: closer.at });
    index = close;
  }
  return spans;
}

interface Run {
  readonly at: number;
  readonly length: number;
}

function backtickRuns(line: string): Run[] {
  const runs: Run[] = [];
  for (let at = line.indexOf("`"); at !== -1; ) {
    let end = at + 1;
    while (line.charCodeAt(end) === 96) end += 1;
    runs.push({ at, length: end - at });
    at = line.indexOf("`", end);
  }
  return runs;
}

/** Per run the next one of the same length, found from the right, so that unmatched runs stay linear. */
function closersOf(runs: readonly Run[]): (number | undefined)[] {
  const closers: (number | undefined)[] = new Array(runs.length);
  const nextOfLength = new Map<number, number>();
  for (let index = runs.length - 1; index >= 0; index -= 1) {
    const length = runs[index]?.length ?? 0;
    closers[index] = nextOfLength.get(length);
    nextOfLength.set(length, index);
  }
  return closers;
}
