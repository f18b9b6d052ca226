import { compileGlob } from "../../base/glob/glob.ts";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import { splitOutsideBraces } from "../../specs/markdown/characters.ts";
import { lineText, type MarkdownScan } from "../../specs/markdown/scan-markdown.ts";
import type { GuidelineRecord } from "../guideline-record.ts";
import { type FileIndex, fileIndexOf } from "./file-index.ts";
import { type LintProject, type Place, quoteText, warningAbout } from "./finding.ts";

/**
 * A warning for globs that match no file, with a likely correction that does match. Without any files there are no warnings.
 *
 * If another glob of the list matches, the check only reports a glob that has a correction, or names a file or folder that is gone:
 * teams list all endings of a language whether they have such files or not.
 */
export function findDeadGlobs(records: readonly GuidelineRecord[], project: LintProject): Diagnostic[] {
  const index = fileIndexOf(project.files);
  if (index.size === 0) return [];
  const known = new Map<string, Verdict>();
  const verdictOn = (glob: string, scope: string): Verdict => {
    const key = `${scope}\n${glob}`;
    const verdict = known.get(key) ?? judge(glob, scope, index);
    known.set(key, verdict);
    return verdict;
  };
  // The front matter of a sectioned file applies to each of its sections, but is reported once.
  const reported = new Set<string>();
  return records.flatMap((record) => {
    // Globs that have no effect are reported as such.
    if (record.source_type === "sample" || record.inclusion !== "pattern") return [];
    const verdicts = [...new Set(record.globs)].map((glob) => verdictOn(glob, record.scope));
    const dead = verdicts.filter(
      (verdict) =>
        !verdict.isAlive &&
        !(record.tool === "kiro" && splitOutsideBraces(verdict.glob).length > 1) &&
        !isOpen(verdict, record),
    );
    const isAlive = dead.length < verdicts.length;
    const [plain, remarkable] = split(dead, (verdict) => !isRemarkable(verdict, record.scope, index));
    // The same slip in several globs of a list is one mistake; a fix mends them one after the other.
    const [corrected, single] = split(remarkable, ({ intended }) => intended !== undefined);
    const groups = [corrected, ...single.map((verdict) => [verdict]), ...(isAlive ? [] : [plain])];
    return groups.flatMap((group): Diagnostic[] => {
      const [first] = group;
      const key = JSON.stringify([record.source_file, first?.glob]);
      if (first === undefined || reported.has(key)) return [];
      reported.add(key);
      const fix = first.intended === undefined ? undefined : { text: first.intended };
      const about = { rule: "glob-no-match", field: "file_pattern" } as const;
      const found = { ...about, code: first.code, message: messageFor(group, record.scope), fix };
      const place = placeOfGlob(record, first.glob, project.scanOf(record.source_file));
      return [warningAbout(record, found, place)];
    });
  });
}

interface Verdict {
  readonly glob: string;
  readonly isAlive: boolean;
  readonly code: "glob_invalid" | "glob_no_file";
  /** Why it cannot match anything. */
  readonly invalid?: string | undefined;
  /** A glob that was probably meant. */
  readonly intended?: string | undefined;
  /** The globs that were probably meant, if it is a list in one text. */
  readonly parts?: readonly string[] | undefined;
}

function judge(source: string, scope: string, index: FileIndex): Verdict {
  const { invalid } = compileGlob(source);
  const code = invalid === undefined ? "glob_no_file" : "glob_invalid";
  if (isMatched(source, scope, index)) return { glob: source, isAlive: true, code };
  const parts = splitOutsideBraces(source).map((part) => part.trim());
  const isList = parts.length > 1 && parts.some((part) => isMatched(part, scope, index));
  return {
    glob: source,
    isAlive: false,
    code,
    invalid,
    ...(isList ? { parts } : { intended: intendedGlob(source, scope, index) }),
  };
}

/**
 * Whether a tool can find a file where kit finds none. Cursor does not document whether a pattern without a slash matches in every
 * folder; VS Code, which reads Copilot's instructions, also matches virtual documents, such as issues of its GitHub extension.
 */
function isOpen({ glob, intended }: Verdict, { tool }: GuidelineRecord): boolean {
  if (tool === "cursor") return !glob.includes("/") && intended === `**/${glob}`;
  return tool === "copilot" && intended === undefined && /^\*\*\/[^*?[\]{}/]+\/\*\*(?:\/\*)?$/.test(glob);
}

/** Whether a glob deserves a finding although another one of its list matches. */
function isRemarkable({ glob, code, intended, parts }: Verdict, scope: string, index: FileIndex): boolean {
  if (code === "glob_invalid" || intended !== undefined || parts !== undefined) return true;
  const { prefix } = compileGlob(glob);
  const folder = prefix.slice(0, Math.max(0, prefix.lastIndexOf("/")));
  const isPath = prefix === glob && glob.includes("/");
  return isPath || !index.hasFolder(scope === "" || folder === "" ? scope + folder : `${scope}/${folder}`);
}

function messageFor(group: readonly Verdict[], scope: string): string {
  const below = scope === "" ? "" : ` below ${quoteText(scope)}`;
  const [first] = group;
  const meant = group.flatMap(({ intended }) => (intended === undefined ? [] : [intended]));
  const isList = first?.parts !== undefined;
  const hint = isList
    ? ` Did you mean a list of ${quoted(first.parts)}?`
    : meant.length > 0
      ? ` Did you mean ${quoted(meant)}?`
      : "";
  const names = quoted(group.map(({ glob }) => glob));
  if (group.length === 1)
    return first?.invalid === undefined
      ? `The glob ${names} matches no file${below}.${hint}`
      : `The glob ${names} matches nothing: ${first.invalid}.${hint}`;
  return `The globs ${names} match no file${below}${hint === "" ? ", so the rule never applies" : ""}.${hint}`;
}

function quoted(globs: readonly string[]): string {
  const names = globs.map((glob) => `"${quoteText(glob)}"`);
  return names.length > 4 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more` : names.join(", ");
}

/** The first likely reading of a glob that matches a file; the corrections are for mistakes seen in real rules. */
function intendedGlob(source: string, scope: string, index: FileIndex): string | undefined {
  const path = source.replaceAll("\\", "/").replace(/^(?:\.?\/)+/, "");
  const fromRoot = scope !== "" && path.startsWith(`${scope}/`) ? [path.slice(scope.length + 1)] : [];
  const folder = path.replace(/\/+$/, "");
  const mayBeFolder = !/[*?[{][^/]*$/.test(folder);
  const guesses = [
    ...fromRoot,
    path,
    path.replace(/\/\*$/, "/**"),
    ...(mayBeFolder ? [`${folder}/**`] : []),
    `**/${path}`,
    path.replace(/\/(\*[^/]*)$/, "/**/$1"),
    ...(mayBeFolder ? [`**/${folder}/**`] : []),
  ];
  return guesses.find((guess) => guess !== source && isMatched(guess, scope, index));
}

function isMatched(source: string, scope: string, index: FileIndex): boolean {
  const glob = compileGlob(source);
  return glob.invalid === undefined && index.hasMatch(glob, scope);
}

/** The line and columns of a glob in the front matter, or in the pattern line of a section. */
function placeOfGlob(record: GuidelineRecord, glob: string, scan: MarkdownScan | undefined): Place {
  const fallback = { line: record.span.start_line };
  if (scan === undefined) return fallback;
  const { start_line, end_line } = record.span;
  const lines = scan.bodyLine > 1 ? [1, scan.bodyLine - 1] : [start_line, Math.min(end_line, start_line + 3)];
  for (let line = lines[0] ?? 1; line <= (lines[1] ?? 1); line += 1) {
    const text = lineText(scan, line);
    for (let at = text.indexOf(glob); at !== -1; at = text.indexOf(glob, at + 1)) {
      const around = (text[at - 1] ?? " ") + (text[at + glob.length] ?? " ");
      if (/^[\s"'`,[(:-][\s"'`,\])]$/.test(around))
        return { line, column: at + 1, end_column: at + 1 + glob.length };
    }
  }
  return fallback;
}

function split<Item>(items: readonly Item[], isFirst: (item: Item) => boolean): [Item[], Item[]] {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))];
}
