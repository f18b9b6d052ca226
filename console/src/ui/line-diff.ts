/** A line of a diff; `@` stands for lines that are left out. */
export interface DiffLine {
  readonly mark: "+" | "-" | " " | "@";
  readonly text: string;
}

/** How many lines around a change are shown. */
const around = 3;
/** The most lines that are shown. */
const most = 1_000;

/**
 * Returns the lines that differ between two texts. Equal lines at both ends are left out except for a few. The lines between are
 * all old and all new lines, unless they are few enough to be compared line by line.
 */
export function diffLines(before: string, after: string): readonly DiffLine[] {
  const [old, next] = [linesOf(before), linesOf(after)];
  let start = 0;
  while (start < old.length && start < next.length && old[start] === next[start]) start += 1;
  let end = 0;
  const shortest = Math.min(old.length, next.length) - start;
  while (end < shortest && old.at(-1 - end) === next.at(-1 - end)) end += 1;
  const changed = middle(old.slice(start, old.length - end), next.slice(start, next.length - end));
  if (changed.length === 0) return [];
  const same = (text: string): DiffLine => ({ mark: " ", text });
  const lines = [
    ...(start > around ? [leftOut(start - around)] : []),
    ...old.slice(Math.max(0, start - around), start).map(same),
    ...changed,
    ...old.slice(old.length - end, old.length - end + around).map(same),
    ...(end > around ? [leftOut(end - around)] : []),
  ];
  return lines.length > most ? [...lines.slice(0, most), leftOut(lines.length - most)] : lines;
}

/** Diffs short texts by their longest common subsequence. Of long texts, returns all old and all new lines. */
function middle(old: readonly string[], next: readonly string[]): readonly DiffLine[] {
  const width = next.length + 1;
  if (old.length * width > 1_000_000)
    return [
      ...old.map((text): DiffLine => ({ mark: "-", text })),
      ...next.map((text): DiffLine => ({ mark: "+", text })),
    ];
  const lengths = new Uint32Array((old.length + 1) * width);
  const at = (row: number, column: number): number => lengths[row * width + column] ?? 0;
  for (let row = old.length - 1; row >= 0; row -= 1)
    for (let column = next.length - 1; column >= 0; column -= 1)
      lengths[row * width + column] =
        old[row] === next[column]
          ? at(row + 1, column + 1) + 1
          : Math.max(at(row + 1, column), at(row, column + 1));
  const lines: DiffLine[] = [];
  let [row, column] = [0, 0];
  while (row < old.length || column < next.length) {
    const [one, other] = [old[row], next[column]];
    if (one !== undefined && one === other) {
      lines.push({ mark: " ", text: one });
      row += 1;
      column += 1;
    } else if (one !== undefined && (other === undefined || at(row + 1, column) >= at(row, column + 1))) {
      lines.push({ mark: "-", text: one });
      row += 1;
    } else {
      lines.push({ mark: "+", text: other ?? "" });
      column += 1;
    }
  }
  return lines;
}

function leftOut(count: number): DiffLine {
  return { mark: "@", text: `${count.toLocaleString()} ${count === 1 ? "line" : "lines"}` };
}

function linesOf(text: string): readonly string[] {
  const lines = text.split(/\r\n|\n|\r/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}
