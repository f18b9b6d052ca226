import { splitOutsideBraces } from "../../specs/markdown/characters.ts";

const patternLine = /^_File pattern: (`+)(.+)\1_$/;

/**
 * The line under a sub-heading that carries a `file_pattern` in formats without front matter:
 * ``_File pattern: `src/**\/*.ts`_``. Text with control characters is spelled as a JSON string.
 */
export function toPatternLine(filePattern: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a line break would end the line
  const isPlain = !/[\u0000-\u001f\u007f]|^"|^\s|\s$/.test(filePattern);
  const text = isPlain ? filePattern : JSON.stringify(filePattern);
  const longest = Math.max(0, ...Array.from(text.matchAll(/`+/g), (run) => run[0].length));
  const fence = "`".repeat(longest + 1);
  // CommonMark strips one space from both ends, so that a span can begin with a backtick.
  const padding = text.startsWith("`") || text.endsWith("`") ? " " : "";
  return `_File pattern: ${fence}${padding}${text}${padding}${fence}_`;
}

/** The globs of such a line; undefined for any other line. */
export function readPatternLine(line: string): string[] | undefined {
  const match = patternLine.exec(line);
  const inside = match?.[2];
  if (inside === undefined || inside.startsWith("`") || inside.endsWith("`")) return undefined;
  const text = /^ .*` $|^ `.* $/.test(inside) ? inside.slice(1, -1) : inside;
  return splitOutsideBraces(text.startsWith('"') ? (parsedString(text) ?? text) : text);
}

function parsedString(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}
