/** Longer blocks are shown as they are. */
const longestBlock = 20_000;
/** Quotes and lists that begin on one line, one in the other. */
const deepestLine = 16;
/** The indentation of a list item, in characters. */
const widestIndent = 64;
/** Emphasis and brackets take a reader of Markdown time that grows with the square of their number. */
const mostSigns = { emphasis: 1_000, brackets: 1_000, cells: 4_000 } as const;

/**
 * Whether a block of Markdown is rendered in a moment. A repository or a model may hold texts that take a reader of Markdown minutes, or more
 * levels than its stack has; they are shown as they are.
 */
export function isTame(block: string): boolean {
  if (block.length > longestBlock) return false;
  const count = { emphasis: 0, brackets: 0, cells: 0 };
  for (const sign of block) {
    if (sign === "*" || sign === "_" || sign === "~") count.emphasis += 1;
    else if (sign === "[" || sign === "]") count.brackets += 1;
    else if (sign === "|") count.cells += 1;
  }
  return (
    count.emphasis <= mostSigns.emphasis &&
    count.brackets <= mostSigns.brackets &&
    count.cells <= mostSigns.cells &&
    block.split("\n").every(isShallow)
  );
}

/** A sign that opens a quote or an item of a list. */
const opening = /[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t]|$))/y;

function isShallow(line: string): boolean {
  opening.lastIndex = 0;
  let depth = 0;
  while (depth <= deepestLine && opening.test(line)) depth += 1;
  const indent = /^[ \t]*/.exec(line)?.[0].length ?? 0;
  return depth <= deepestLine && (indent <= widestIndent || depth === 0);
}
