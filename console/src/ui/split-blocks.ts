/** Splits a Markdown text into blocks at empty lines outside of fences, so that only the last block of a growing text is parsed again. */
export function splitBlocks(text: string): readonly string[] {
  const blocks: string[] = [];
  let lines: string[] = [];
  let fence: string | undefined;
  for (const line of text.split("\n")) {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (mark !== undefined) {
      if (fence === undefined) fence = mark;
      else if (mark.startsWith(fence) && line.trim() === mark) fence = undefined;
    }
    // Indented lines belong to a list above them.
    if (line === "" && fence === undefined && !lines.some((one) => /^\s*([-*+]|\d+[.)])\s/.test(one))) {
      if (lines.length > 0) blocks.push(lines.join("\n"));
      lines = [];
    } else lines.push(line);
  }
  if (lines.length > 0) blocks.push(lines.join("\n"));
  return blocks;
}
