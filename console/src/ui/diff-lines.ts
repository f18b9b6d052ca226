export interface DiffLine {
  readonly kind: "same" | "removed" | "added";
  readonly text: string;
}

const around = 3;

/** The lines by which two texts differ: everything between their common beginning and their common end. */
export function diffLines(before: string, after: string): readonly DiffLine[] {
  const old = before === "" ? [] : before.split("\n");
  const fresh = after === "" ? [] : after.split("\n");
  let start = 0;
  while (start < old.length && start < fresh.length && old[start] === fresh[start]) start += 1;
  let end = 0;
  while (end < Math.min(old.length, fresh.length) - start && old.at(-1 - end) === fresh.at(-1 - end))
    end += 1;
  const same = (lines: readonly string[]): DiffLine[] => lines.map((text) => ({ kind: "same", text }));
  return [
    ...same(old.slice(Math.max(0, start - around), start)),
    ...old.slice(start, old.length - end).map((text): DiffLine => ({ kind: "removed", text })),
    ...fresh.slice(start, fresh.length - end).map((text): DiffLine => ({ kind: "added", text })),
    ...same(old.slice(old.length - end, old.length - end + around)),
  ];
}
