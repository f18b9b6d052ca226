/** A code span of a line: the offsets of its content, between the backtick runs. */
export interface CodeSpan {
  readonly from: number;
  readonly to: number;
}

/** Code spans after CommonMark 0.31.2, section 6.1: a run of backticks closes with an equal run. */
export function codeSpans(line: string): CodeSpan[] {
  if (!line.includes("`")) return [];
  const runs = [...line.matchAll(/`+/g)].map((match) => ({ at: match.index, length: match[0].length }));
  // The next run of the same length, found from the right, keeps unmatched runs linear.
  const closers: (number | undefined)[] = new Array(runs.length);
  const nextOfLength = new Map<number, number>();
  for (let index = runs.length - 1; index >= 0; index -= 1) {
    const length = runs[index]?.length ?? 0;
    closers[index] = nextOfLength.get(length);
    nextOfLength.set(length, index);
  }
  const spans: CodeSpan[] = [];
  for (let index = 0; index < runs.length; index += 1) {
    const opener = runs[index];
    const closer = runs[closers[index] ?? -1];
    if (opener === undefined || closer === undefined) continue;
    spans.push({ from: opener.at + opener.length, to: closer.at });
    index = closers[index] ?? index;
  }
  return spans;
}
