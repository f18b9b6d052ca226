/** The most characters of a block that is rendered. */
const longestBlock = 20_000;
/** The most quotes and lists inside each other that begin on one line. */
const deepestLine = 16;
/** The indentation of a list item, in characters. */
const widestIndent = 64;
/** Limits for marks on which a Markdown parser spends time that grows with the square of their number. */
const mostSigns = { emphasis: 1_000, brackets: 1_000, cells: 4_000 } as const;

/**
 * Whether a Markdown parser renders a block quickly. Texts of a repository or a model can take it minutes, or have more
 * levels than its stack; they are shown as plain text.
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

/** A mark that opens a quote or a list item. */
const opening = /[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t]|$))/y;

function isShallow(line: string): boolean {
  opening.lastIndex = 0;
  let depth = 0;
  while (depth <= deepestLine && opening.test(line)) depth += 1;
  const indent = /^[ \t]*/.exec(line)?.[0].length ?? 0;
  return depth <= deepestLine && (indent <= widestIndent || depth === 0);
}
