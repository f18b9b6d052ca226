/** How many lines two texts differ in. */
interface ChangedLines {
  readonly added: number;
  readonly removed: number;
}

/** Beyond so many changed lines, all lines from the first change to the last one count. */
const mostSteps = 2_000;

/**
 * Compares two texts as `git diff -w` does: line by line, without any space. Undefined if they are the same.
 *
 * @see "An O(ND) Difference Algorithm and Its Variations", Myers, 1986
 */
export function changedLines(before: string, after: string): ChangedLines | undefined {
  const [old, now] = [spacelessLines(before), spacelessLines(after)];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let end = 0;
  const most = Math.min(old.length, now.length) - start;
  while (end < most && old.at(-1 - end) === now.at(-1 - end)) end += 1;
  const from = old.slice(start, old.length - end);
  const to = now.slice(start, now.length - end);
  if (from.length + to.length === 0) return undefined;
  const steps = shortestEdit(from, to);
  if (steps === undefined) return { added: to.length, removed: from.length };
  const growth = to.length - from.length;
  return { added: (steps + growth) / 2, removed: (steps - growth) / 2 };
}

function spacelessLines(text: string): readonly string[] {
  const lines = text.replace(/[ \t\r]+/g, "").split("\n");
  // A missing line end at the end of a file is white space, too.
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** The least number of added and removed lines; undefined if it is large. */
function shortestEdit(from: readonly string[], to: readonly string[]): number | undefined {
  const limit = Math.min(from.length + to.length, mostSteps);
  const reach = new Int32Array(2 * limit + 3);
  const middle = limit + 1;
  for (let steps = 0; steps <= limit; steps += 1)
    for (let diagonal = -steps; diagonal <= steps; diagonal += 2) {
      const [below, above] = [reach[middle + diagonal - 1] ?? 0, reach[middle + diagonal + 1] ?? 0];
      let x = diagonal === -steps || (diagonal !== steps && below < above) ? above : below + 1;
      while (x < from.length && x - diagonal < to.length && from[x] === to[x - diagonal]) x += 1;
      reach[middle + diagonal] = x;
      if (x >= from.length && x - diagonal >= to.length) return steps;
    }
  return undefined;
}
