import type { DraftMention } from "../adapter.ts";
import { type CodeSpan, codeSpans } from "../markdown/code-spans.ts";
import { lineKinds, type MarkdownScan, textOfLines } from "../markdown/scan-markdown.ts";

/** A link destination longer than this is not read; it bounds the work on hostile lines. */
const maxDestinationLength = 1024;

const kiroReference = "#[[file:";

/**
 * The file paths that lines `fromLine` to `toLine` (1-based, inclusive) mention in inline code, in
 * link destinations, or as Kiro's `#[[file:path]]`: each path once, with the first line that names it.
 *
 * Only prose lines count: code fences, comments, HTML blocks and front matter name paths for other
 * reasons. Whether a path exists is for the caller to find out. Linear in the text of the lines.
 *
 * @example
 * ```ts
 * import { mentionsIn, scanMarkdown } from "kit/specs";
 *
 * const scan = scanMarkdown("See `src/cart.ts`.\n");
 * console.log(mentionsIn(scan, 1, scan.lineCount)); // src/cart.ts, on line 1
 * ```
 */
export function mentionsIn(scan: MarkdownScan, fromLine: number, toLine: number): DraftMention[] {
  const found = new Map<string, DraftMention>();
  const first = Math.max(1, fromLine);
  const last = Math.min(toLine, scan.lineCount);
  const offset = scan.starts[first - 1] ?? scan.text.length;
  // The search for the next mark must not run past these lines, or many short ranges cost the file each.
  const text = textOfLines(scan, first, last);
  let nextCode = -1;
  let nextLink = -1;
  let nextReference = -1;
  for (let line = first; line <= last; line += 1) {
    const start = (scan.starts[line - 1] ?? 0) - offset;
    const end = (scan.ends[line - 1] ?? 0) - offset;
    // Most lines have none of the marks, so the text is searched for the next ones, not line by line.
    if (nextCode < start) nextCode = indexOrEnd(text, "`", start);
    if (nextLink < start) nextLink = indexOrEnd(text, "](", start);
    if (nextReference < start) nextReference = indexOrEnd(text, kiroReference, start);
    if (nextCode >= end && nextLink >= end && nextReference >= end) continue;
    if (scan.kinds[line - 1] !== lineKinds.prose) continue;
    for (const written of pathsOfLine(text.slice(start, end))) {
      const path = toMentionPath(written);
      if (path !== undefined && !found.has(path)) found.set(path, { path, line });
    }
  }
  return [...found.values()];
}

function indexOrEnd(text: string, mark: string, from: number): number {
  const index = text.indexOf(mark, from);
  return index === -1 ? text.length : index;
}

function pathsOfLine(line: string): string[] {
  const paths: string[] = [];
  const spans = codeSpans(line);
  for (const span of spans) {
    // Inline code with a space in it is a command or a phrase; a file name with one is linked.
    const code = line.slice(span.from, span.to).trim();
    if (!/\s/.test(code)) paths.push(code);
  }
  for (const at of uncovered(line, kiroReference, spans)) {
    const file = enclosed(line, at + kiroReference.length, "]]");
    if (file !== undefined) paths.push(file);
  }
  for (const at of uncovered(line, "](", spans)) {
    const destination = destinationAt(line, at + 2);
    if (destination !== undefined) paths.push(decoded(destination));
  }
  return paths;
}

/** The offset of a mark in a line, outside of code spans. */
function uncovered(line: string, mark: string, spans: readonly CodeSpan[]): number[] {
  const places: number[] = [];
  let span = 0;
  for (let at = line.indexOf(mark); at !== -1; at = line.indexOf(mark, at + mark.length)) {
    while (span < spans.length && (spans[span]?.to ?? 0) <= at) span += 1;
    if ((spans[span]?.from ?? line.length) > at) places.push(at);
  }
  return places;
}

/** A link destination (section 6.3): in angle brackets, or without spaces and with balanced parentheses. */
function destinationAt(line: string, from: number): string | undefined {
  if (line[from] === "<") return enclosed(line, from + 1, ">");
  const last = Math.min(line.length, from + maxDestinationLength);
  let depth = 0;
  for (let at = from; at < last; at += 1) {
    const character = line[at];
    if (character === "(") depth += 1;
    else if (character === ")" && depth > 0) depth -= 1;
    else if (character === ")" || character === " " || character === "\t") return line.slice(from, at);
  }
  return undefined;
}

function enclosed(line: string, from: number, closer: string): string | undefined {
  const reach = line.slice(from, from + maxDestinationLength);
  const close = reach.indexOf(closer);
  return close === -1 ? undefined : reach.slice(0, close);
}

function decoded(destination: string): string {
  if (!destination.includes("%")) return destination;
  try {
    return decodeURIComponent(destination);
  } catch {
    return destination;
  }
}

/** The longest path a mention can be. */
const maxPathLength = 512;

/** Line and symbol suffixes behind a path: `#L10`, `:10`, `:10-20`, `:10:5`, `::test_name`. */
const suffix = /(?:#.*|::.*|(?::\d+(?:-\d+)?){1,2})$/s;

// Globs, templates, commands and prose hold characters that no path kit looks for has. Brackets,
// parentheses and a dollar sign stay: web frameworks name files `[id].tsx`, `(auth)/`, `$user.ts`.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it refuses
const notInPath = /[\u0000-\u001f\u007f*?{}<>|"'`;=,!^\\]|:\/\/|\(\)/;
const scheme = /^[a-z][a-z0-9+.-]*:/i;
/** A name with an extension (`a.test.ts`), or a dot file (`.env.local`). */
const fileName = /^[^.].*\.[A-Za-z0-9_]{1,12}$|^\.[A-Za-z][\w.-]*$/;
const version = /^v?[\d.]+$/;

/** Names without an extension that are files all the same. */
const bareNames = new Set(
  "Makefile Dockerfile Containerfile Justfile Procfile Gemfile Rakefile Vagrantfile Jenkinsfile LICENSE CODEOWNERS".split(
    " ",
  ),
);

/**
 * The path in a piece of inline code or a link destination, without its anchor, line or symbol
 * suffix; undefined where the text cannot name one file: URLs, globs, folders, calls, versions.
 */
export function toMentionPath(written: string): string | undefined {
  if (written.length === 0 || written.length > maxPathLength) return undefined;
  const path = written.includes(":") || written.includes("#") ? written.replace(suffix, "") : written;
  const slash = path.lastIndexOf("/");
  // Most inline code is a name of the program, with neither a folder nor an extension.
  if (slash === -1 && !path.includes(".") && !bareNames.has(path)) return undefined;
  if (slash === path.length - 1 || path.startsWith("@") || path.startsWith("-")) return undefined;
  if (notInPath.test(path) || scheme.test(path) || version.test(path)) return undefined;
  const name = path.slice(slash + 1);
  if (name === "." || name === "..") return undefined;
  return slash !== -1 || bareNames.has(name) || fileName.test(name) ? path : undefined;
}
