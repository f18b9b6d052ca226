import { percentDecoded } from "../../base/percent.ts";
import type { DraftMention } from "../adapter.ts";
import { type CodeSpan, codeSpans } from "../markdown/characters.ts";
import { lineKinds, type MarkdownScan, textOfLines } from "../markdown/scan-markdown.ts";

/** Longer link destinations are not read; this bounds the work on hostile lines. */
const maxDestinationLength = 1024;

const kiroReference = "#[[file:";

/**
 * The file paths that lines `fromLine` to `toLine` (1-based, inclusive) mention in inline code, in link destinations, or as
 * Kiro's `#[[file:path]]`: each path once, with the first line that names it.
 *
 * Only prose lines count: code fences, comments, HTML blocks and front matter name paths for other reasons. Does not check that a
 * path exists. Linear in the text of the lines.
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
    // Most lines have none of the marks, so this searches the text for the next mark instead of reading every line.
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
    if (destination !== undefined) paths.push(percentDecoded(destination));
  }
  return paths;
}

/** The offset of a mark in a line, outside of code spans. */
function uncovered(line: string, mark: string, spans: readonly CodeSpan[]): number[] {
  const positions: number[] = [];
  let span = 0;
  for (let at = line.indexOf(mark); at !== -1; at = line.indexOf(mark, at + mark.length)) {
    while (span < spans.length && (spans[span]?.to ?? 0) <= at) span += 1;
    if ((spans[span]?.from ?? line.length) > at) positions.push(at);
  }
  return positions;
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

/** The longest path a mention can be. */
const maxPathLength = 512;

/** Line and symbol suffixes after a path: `#L10`, `:10`, `:10-20`, `:10:5`, `::test_name`. */
const suffix = /(?:#.*|::.*|(?::\d+(?:-\d+)?){1,2})$/s;

// Globs, templates, commands and prose hold characters that no path kit looks for has. Brackets,
// parentheses and a dollar sign stay: web frameworks name files `[id].tsx`, `(auth)/`, `$user.ts`.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it refuses
const notInPath = /[\u0000-\u001f\u007f*?{}<>|"'`;=,!^\\]|:\/\/|\(\)/;
const scheme = /^[a-z][a-z0-9+.-]*:/i;
/** A name with an extension (`a.test.ts`), or a dot file (`.env.local`). */
const fileName = /^[^.].*\.[A-Za-z0-9_]{1,12}$|^\.[A-Za-z][\w.-]*$/;
const version = /^v?[\d.]+$/;

/** Names of files without an extension. */
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

/** The files of a project that a block names, project-relative, each once, in the order of mention. */
export interface FileRefs {
  readonly code_refs: readonly string[];
  readonly test_refs: readonly string[];
}

/**
 * The project files that a mentioned path can mean, the likeliest first: relative to the folder of the file that mentions it,
 * then to each folder above it up to the root, so that the `src/` of a package comes before that of the repository. `./x` and
 * `../x` mean one file only, `/x` the file in the root.
 */
export function mentionCandidates(sourcePath: string, mention: string): string[] {
  if (mention.startsWith("/")) return normalized("", mention.slice(1));
  let folder = folderOf(sourcePath);
  if (/^\.{1,2}\//.test(mention)) return normalized(folder, mention);
  const candidates = normalized(folder, mention);
  while (folder !== "") {
    folder = folderOf(folder);
    candidates.push(...normalized(folder, mention));
  }
  return candidates;
}

/** Sorts the mentions of a block into code and tests; leaves out files that do not exist. */
export function resolveMentions(
  sourcePath: string,
  mentions: readonly DraftMention[],
  exists: (path: string) => boolean,
): FileRefs {
  const code = new Set<string>();
  const tests = new Set<string>();
  for (const mention of mentions) {
    const file = mentionCandidates(sourcePath, mention.path).find(
      (path) => path !== sourcePath && exists(path),
    );
    if (file === undefined) continue;
    const isTest = mention.role === undefined ? isTestPath(file) : mention.role === "test";
    (isTest ? tests : code).add(file);
  }
  return { code_refs: [...code], test_refs: [...tests] };
}

/** The folder of a project-relative path; "" for the root. */
export function folderOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

/** A path below a folder without "." and ".." segments; undefined where it leaves the root. */
function normalized(folder: string, path: string): string[] {
  const segments = folder === "" ? [] : folder.split("/");
  for (const segment of path.split("/")) {
    if (segment === "" || segment === ".") continue;
    if (segment !== "..") segments.push(segment);
    else if (segments.pop() === undefined) return [];
  }
  return segments.length === 0 ? [] : [segments.join("/")];
}

const codeExtensions = new Set(
  (
    "ts tsx mts cts js jsx mjs cjs vue svelte py pyi rb go rs java kt kts scala groovy cs fs vb c h cc cpp cxx hpp " +
    "m mm swift php ex exs erl hs ml clj cljs cljc dart lua r jl pl t sh bash bats ps1 sql zig nim cr sol elm feature robot"
  ).split(" "),
);
const testOnlyExtensions = new Set(["bats", "feature", "robot", "t"]);

const testFolders = new Set(
  "test tests __tests__ testing spec specs __specs__ e2e cypress integration-tests integration_tests unit-tests unit_tests".split(
    " ",
  ),
);

/** `a.test.ts`, `a_spec.rb`, `a-test.js`, `test_a.py`, `tests.rs`, `a.e2e.ts`, `a.cy.ts`. */
const testName = /(?:^|[._-])(?:tests?|specs?|e2e|cy|it)(?:[._-]|$)/;
/** `LoginTest.java`, `LoginTests.cs`, `LoginSpec.scala`, `LoginIT.java`. */
const capitalName = /[a-z0-9](?:Tests?|TestCase|Specs?|IT)$/;

/**
 * Whether a path is that of a test, by the conventions of its language: a source file (by its
 * extension) in a folder of tests, or with the name of one. Decides by the path alone.
 *
 * @example
 * ```ts
 * import { isTestPath } from "kit/project";
 *
 * isTestPath("src/cart.test.ts"); // true
 * ```
 */
export function isTestPath(path: string): boolean {
  const segments = path.split("/");
  const file = segments.pop() ?? "";
  const dot = file.lastIndexOf(".");
  const extension = file.slice(dot + 1).toLowerCase();
  if (dot <= 0 || !codeExtensions.has(extension)) return false;
  if (testOnlyExtensions.has(extension)) return true;
  const name = file.slice(0, dot);
  if (testName.test(name.toLowerCase()) || capitalName.test(name)) return true;
  return segments.some((segment) => testFolders.has(segment.toLowerCase()));
}

const fixtureFolders = new Set(
  "fixture fixtures __fixtures__ test-fixtures test_fixtures testdata test-data test_data __mocks__ __snapshots__".split(
    " ",
  ),
);
const testFoldersAbove = new Set("test tests __tests__ e2e".split(" "));
/** Tools whose specs have a separate folder. Instruction files are often about a folder of tests, so their tools are not here. */
const toolsWithFolders = new Set(["kiro", "speckit", "openspec"]);

/**
 * Whether a file is data of tests, and so not a spec of the project: it is below a folder of fixtures, or, for tools with a
 * separate folder of specs, below a folder of tests.
 */
export function isFixturePath(path: string, adapter: string): boolean {
  const folders = path.split("/").slice(0, -1);
  const ofTests = toolsWithFolders.has(adapter);
  return folders.some((folder) => fixtureFolders.has(folder) || (ofTests && testFoldersAbove.has(folder)));
}
