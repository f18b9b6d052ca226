/** Braces that stand for more globs than this are not expanded. */
export const maxBraceExpansions = 256;

/** The globs that braces stand for, in order, or nothing when there are too many. */
export function expandBraces(source: string): string[] | undefined {
  let done: string[] = [""];
  let text = "";
  for (let index = 0; index < source.length; index += 1) {
    const character = source[index] ?? "";
    if (character === "\\") {
      text += source.slice(index, index + 2);
      index += 1;
      continue;
    }
    const group = character === "{" ? braceGroup(source, index) : undefined;
    if (group === undefined) {
      text += character;
      continue;
    }
    const options: string[] = [];
    for (const part of group.parts) {
      const inner = expandBraces(part);
      if (inner === undefined || options.length + inner.length > maxBraceExpansions) return undefined;
      options.push(...inner);
    }
    if (done.length * options.length > maxBraceExpansions) return undefined;
    const before = text;
    done = done.flatMap((start) => options.map((option) => start + before + option));
    text = "";
    index = group.end;
  }
  return done.map((start) => start + text);
}

/** The parts of the group that opens at `open`; nothing where it does not close or has one part. */
function braceGroup(source: string, open: number): { parts: string[]; end: number } | undefined {
  const parts: string[] = [];
  let depth = 0;
  let start = open + 1;
  for (let index = open; index < source.length; index += 1) {
    const character = source[index];
    if (character === "\\") index += 1;
    else if (character === "{") depth += 1;
    else if (character === "," && depth === 1) {
      parts.push(source.slice(start, index));
      start = index + 1;
    } else if (character === "}") {
      depth -= 1;
      if (depth > 0) continue;
      parts.push(source.slice(start, index));
      return parts.length > 1 ? { parts, end: index } : undefined;
    }
  }
  return undefined;
}
