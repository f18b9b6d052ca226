import { displayWidth } from "./display-width.ts";

/**
 * One line as several that are at most `width` columns wide, broken at blanks; all begin with the blanks that it begins with. A word that is wider
 * than that stays whole, because paths and ids are there to be copied.
 */
export function wrap(text: string, width: number): readonly string[] {
  const [indent = ""] = /^ */.exec(text) ?? [];
  if (indent !== "")
    return wrap(text.slice(indent.length), width - indent.length).map((line) => indent + line);
  const lines: string[] = [];
  let line = "";
  let used = 0;
  for (const word of text.split(" ")) {
    const wordWidth = displayWidth(word);
    if (line !== "" && used + 1 + wordWidth > width) {
      lines.push(line);
      line = word;
      used = wordWidth;
    } else {
      line = line === "" ? word : `${line} ${word}`;
      used += wordWidth + (used === 0 ? 0 : 1);
    }
  }
  return [...lines, line];
}
