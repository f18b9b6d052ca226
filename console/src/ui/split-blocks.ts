/** The blocks of a Markdown text, cut at empty lines outside of fences, so that a text that grows is read again at its end only. */
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
    // Lines that are set in belong to a list above them.
    if (line === "" && fence === undefined && !lines.some((one) => /^\s*([-*+]|\d+[.)])\s/.test(one))) {
      if (lines.length > 0) blocks.push(lines.join("\n"));
      lines = [];
    } else lines.push(line);
  }
  if (lines.length > 0) blocks.push(lines.join("\n"));
  return blocks;
}
